//! Accounts, organisations and who works where.
//!
//! The log says which accounts and organisations exist and who has which role; the vault keeps their names, e-mails
//! and passwords. `vault.memberships` is folded from the organisations' streams and can be folded again at any time.

use std::collections::{BTreeMap, HashMap};

use events::access::{MemberRoleSet, OrgCreated, Role, UserCreated};
use events::envelope::Actor;
use events::keys::{PLATFORM_ORG, check_code};
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::record::record;
use super::{AuthError, Principal, password};
use crate::log::{Expected, Log};
use crate::secrets::Vault;

/// What a new account is made of.
#[derive(Debug, Clone)]
pub struct NewAccount {
    /// The e-mail it signs in with.
    pub email: String,
    /// The name shown to others.
    pub name: String,
    /// The password.
    pub password: String,
    /// The organisation it works in.
    pub org: String,
    /// The role there.
    pub role: Role,
}

fn org_stream(org: &str) -> StreamKey {
    StreamKey::new("org", &[org])
}

/// Whether there is any account at all; false means a first start.
pub async fn any_account(pool: &PgPool) -> Result<bool, AuthError> {
    Ok(sqlx::query_scalar("select exists (select from vault.users)").fetch_one(pool).await?)
}

/// Makes an organisation unless it exists.
pub async fn ensure_org(
    log: &Log,
    org: &str,
    name: &str,
    actor: Actor,
    now: Timestamp,
) -> Result<(), AuthError> {
    check_code("organisation", org).map_err(|error| AuthError::Invalid {
        code: "bad_org",
        message: error.to_string(),
        hint: "use a short code, for example acme",
    })?;
    let event = Event::OrgCreated(OrgCreated { name: name.to_owned() });
    match record(log, org_stream(org), Expected::NoStream, &event, actor, None, now).await {
        Ok(_) | Err(AuthError::Exists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes an account with a role in an organisation that exists. Gives its id.
pub async fn create_account(
    log: &Log,
    pool: &PgPool,
    vault: &Vault,
    new: NewAccount,
    actor: Actor,
    now: Timestamp,
) -> Result<Uuid, AuthError> {
    if log.stream_version(&org_stream(&new.org)).await? == 0 {
        return Err(AuthError::NotFound("organisation"));
    }
    let person = Person { email: new.email, name: new.name, password: Some(new.password) };
    let id = create_person(log, pool, vault, person, actor.clone(), now).await?;
    set_role(log, pool, &new.org, id, Some(new.role), actor, now).await?;
    Ok(id)
}

/// Somebody who gets an account.
#[derive(Debug, Clone)]
pub struct Person {
    /// The e-mail they sign in with.
    pub email: String,
    /// The name shown to others.
    pub name: String,
    /// The password; absent for somebody who signs in by an OpenID provider.
    pub password: Option<String>,
}

/// Makes an account that works nowhere yet. Gives its id.
///
/// # Errors
/// [`AuthError::Invalid`] names what is not acceptable; [`AuthError::Exists`] when the e-mail has an account.
pub async fn create_person(
    log: &Log,
    pool: &PgPool,
    vault: &Vault,
    person: Person,
    actor: Actor,
    now: Timestamp,
) -> Result<Uuid, AuthError> {
    let Person { email, name, password } = person;
    let (email, name) = (email.trim(), name.trim());
    check_email(email)?;
    check_name(name)?;
    let id = Uuid::now_v7();
    let lookup = vault.lookups(email).swap_remove(0);
    let hash = match password {
        Some(password) => {
            password::check(&password, &[email, name])?;
            Some(password::hash(password).await)
        }
        None => None,
    };
    let inserted = sqlx::query(
        "insert into vault.users (id, email_lookup, email_sealed, name_sealed, password_hash, created_at)
         values ($1, $2, $3, $4, $5, $6) on conflict (email_lookup) do nothing",
    )
    .bind(id)
    .bind(&lookup)
    .bind(vault.seal(&email_place(id), email))
    .bind(vault.seal(&name_place(id), name))
    .bind(hash)
    .bind(OffsetDateTime::from(now))
    .execute(pool)
    .await?;
    if inserted.rows_affected() == 0 {
        return Err(AuthError::Exists("an account with this e-mail"));
    }
    let stream = StreamKey::new("user", &[PLATFORM_ORG, &id.to_string()]);
    let created = Event::UserCreated(UserCreated {});
    record(log, stream, Expected::NoStream, &created, actor, None, now).await?;
    Ok(id)
}

/// Forgets an account that came to nothing: what is left of it is an id.
pub(crate) async fn forget(pool: &PgPool, id: Uuid) -> Result<(), AuthError> {
    sqlx::query("delete from vault.users where id = $1").bind(id).execute(pool).await?;
    Ok(())
}

/// Whether this can be an e-mail address.
pub(crate) fn check_email(email: &str) -> Result<(), AuthError> {
    let plausible = email.len() <= 254
        && !email.chars().any(|c| c.is_whitespace() || c.is_control())
        && email.split_once('@').is_some_and(|(local, host)| !local.is_empty() && !host.is_empty());
    if plausible {
        return Ok(());
    }
    let shown: String = email.chars().take(100).collect();
    let message = format!("{shown:?} is not an e-mail address");
    Err(AuthError::Invalid { code: "bad_email", message, hint: "write it as name@host" })
}

fn check_name(name: &str) -> Result<(), AuthError> {
    if !name.is_empty() && name.len() <= 200 && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let message = "the name is empty, too long or holds control characters".to_owned();
    Err(AuthError::Invalid { code: "bad_name", message, hint: "use 1 to 200 characters" })
}

/// Gives an account another name.
///
/// # Errors
/// `bad_name`.
pub(crate) async fn set_name(pool: &PgPool, vault: &Vault, id: Uuid, name: &str) -> Result<(), AuthError> {
    let name = name.trim();
    check_name(name)?;
    sqlx::query("update vault.users set name_sealed = $2 where id = $1")
        .bind(id)
        .bind(vault.seal(&name_place(id), name))
        .execute(pool)
        .await?;
    Ok(())
}

/// Gives an account a role in an organisation, or ends its membership (`None`).
pub async fn set_role(
    log: &Log,
    pool: &PgPool,
    org: &str,
    user: Uuid,
    role: Option<Role>,
    actor: Actor,
    now: Timestamp,
) -> Result<i64, AuthError> {
    let event = Event::MemberRoleSet(MemberRoleSet { user: user.to_string(), role });
    let position = record(log, org_stream(org), Expected::Any, &event, actor, None, now).await?;
    fold_memberships(log, pool, org).await?;
    Ok(position)
}

/// Folds the memberships of an organisation from its stream. A newer fold of another server is never overwritten.
pub async fn fold_memberships(log: &Log, pool: &PgPool, org: &str) -> Result<(), AuthError> {
    const PAGE: i64 = 1000;
    let mut members: BTreeMap<Uuid, (Option<Role>, i64)> = BTreeMap::new();
    let mut from = 1;
    loop {
        let page = log.read_stream(&org_stream(org), from, PAGE).await?;
        for recorded in &page {
            let decoded = Event::decode(&recorded.event_type, recorded.schema_version, &recorded.payload);
            if let Ok(Event::MemberRoleSet(set)) = decoded
                && let Ok(user) = set.user.parse()
            {
                members.insert(user, (set.role, recorded.position));
            }
        }
        match page.last() {
            Some(last) if page.len() as i64 == PAGE => from = last.version + 1,
            _ => break,
        }
    }
    let mut tx = pool.begin().await?;
    for (user, (role, position)) in members {
        let Some(role) = role else {
            sqlx::query("delete from vault.memberships where org = $1 and user_id = $2 and position <= $3")
                .bind(org)
                .bind(user)
                .bind(position)
                .execute(&mut *tx)
                .await?;
            continue;
        };
        sqlx::query(
            "insert into vault.memberships (org, user_id, role, position) values ($1, $2, $3, $4)
             on conflict (org, user_id) do update set role = excluded.role, position = excluded.position
             where memberships.position < excluded.position",
        )
        .bind(org)
        .bind(user)
        .bind(role.as_str())
        .bind(position)
        .execute(&mut *tx)
        .await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Folds the memberships of every organisation that has some: at start-up, in case a process died between the two.
pub async fn fold_all_memberships(log: &Log, pool: &PgPool) -> Result<(), AuthError> {
    let orgs: Vec<String> =
        sqlx::query_scalar("select distinct org from vault.memberships").fetch_all(pool).await?;
    for org in orgs {
        fold_memberships(log, pool, &org).await?;
    }
    Ok(())
}

/// An account found by its e-mail.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub id: Uuid,
    pub password_hash: Option<String>,
    /// Where it works, in the order of the organisations' codes.
    pub memberships: Vec<(String, Role)>,
}

pub(crate) async fn find(pool: &PgPool, vault: &Vault, email: &str) -> Result<Option<Found>, AuthError> {
    let row: Option<(Uuid, Option<String>)> = sqlx::query_as(
        "select id, password_hash from vault.users where email_lookup = any($1) and disabled_at is null",
    )
    .bind(vault.lookups(email))
    .fetch_optional(pool)
    .await?;
    let Some((id, password_hash)) = row else { return Ok(None) };
    Ok(Some(Found { id, password_hash, memberships: memberships(pool, id).await? }))
}

/// Where an account works, in the order of the organisations' codes.
pub(crate) async fn memberships(pool: &PgPool, user: Uuid) -> Result<Vec<(String, Role)>, AuthError> {
    let rows: Vec<(String, String)> =
        sqlx::query_as("select org, role from vault.memberships where user_id = $1 order by org")
            .bind(user)
            .fetch_all(pool)
            .await?;
    Ok(rows.into_iter().filter_map(|(org, role)| Some((org, role_of(&role)?))).collect())
}

/// The role a word stands for.
pub fn role_of(word: &str) -> Option<Role> {
    match word {
        "viewer" => Some(Role::Viewer),
        "member" => Some(Role::Member),
        "admin" => Some(Role::Admin),
        _ => None,
    }
}

fn email_place(id: Uuid) -> String {
    format!("users.email/{id}")
}

fn name_place(id: Uuid) -> String {
    format!("users.name/{id}")
}

/// The names of accounts, where the vault still has them. Only for readers who work in the same organisation.
pub async fn names(
    pool: &PgPool,
    vault: &Vault,
    org: &str,
    users: &[String],
) -> Result<HashMap<String, String>, AuthError> {
    let ids: Vec<Uuid> = users.iter().filter_map(|id| id.parse().ok()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(Uuid, Vec<u8>)> = sqlx::query_as(
        "select u.id, u.name_sealed from vault.users u
         where u.id = any($1) and exists
            (select from vault.memberships m where m.user_id = u.id and m.org = $2)",
    )
    .bind(&ids)
    .bind(org)
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(|(id, sealed)| Ok((id.to_string(), vault.open(&name_place(id), &sealed)?))).collect()
}

/// The members of an organisation by account id, with name and, for its administrators and themselves, e-mail: what
/// the views about people show to this reader. JSON: `{"<id>": {"n": name, "e": e-mail}}`.
///
/// # Errors
/// The database does not answer, or a name does not open.
pub async fn people(pool: &PgPool, vault: &Vault, reader: &Principal) -> Result<String, AuthError> {
    let (Some(org), Some(user)) = (reader.org(), reader.user()) else { return Ok("{}".to_owned()) };
    let rows: Vec<(Uuid, Vec<u8>, Vec<u8>)> = sqlx::query_as(
        "select u.id, u.name_sealed, u.email_sealed from vault.users u
         join vault.memberships m on m.user_id = u.id and m.org = $1",
    )
    .bind(org)
    .fetch_all(pool)
    .await?;
    let admin = reader.role() == Some(Role::Admin);
    let mut people = serde_json::Map::new();
    for (id, name, email) in rows {
        let mut person = serde_json::json!({"n": vault.open(&name_place(id), &name)?});
        if admin || user == id.to_string() {
            person["e"] = vault.open(&email_place(id), &email)?.into();
        }
        people.insert(id.to_string(), person);
    }
    Ok(serde_json::Value::Object(people).to_string())
}

/// What is known of an account to somebody who would guess its password.
pub(crate) async fn known(pool: &PgPool, vault: &Vault, id: Uuid) -> Result<[String; 2], AuthError> {
    let row: Option<(Vec<u8>, Vec<u8>)> =
        sqlx::query_as("select email_sealed, name_sealed from vault.users where id = $1")
            .bind(id)
            .fetch_optional(pool)
            .await?;
    let (email, name) = row.ok_or(AuthError::NotFound("account"))?;
    Ok([vault.open(&email_place(id), &email)?, vault.open(&name_place(id), &name)?])
}

/// An account's id and role in an organisation, by its e-mail.
///
/// # Errors
/// The database does not answer.
pub async fn member(
    pool: &PgPool,
    vault: &Vault,
    email: &str,
    org: &str,
) -> Result<Option<(Uuid, Role)>, AuthError> {
    let Some(found) = find(pool, vault, email).await? else { return Ok(None) };
    Ok(found.memberships.into_iter().find(|(of, _)| of == org).map(|(_, role)| (found.id, role)))
}
