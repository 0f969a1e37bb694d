//! Which account an identity opens.

use events::access::IdentityLinked;
use events::envelope::{Actor, ActorKind};
use events::timestamp::Timestamp;
use events::{Event, StreamKey};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Identity, OidcError};
use crate::auth::accounts::{self, Person};
use crate::auth::record::record;
use crate::auth::sessions::access_stream;
use crate::log::Expected;
use crate::state::AppState;

/// The account of an identity: the one it was linked to, else the one with its verified e-mail, else, with an
/// invitation, a new one.
pub(super) async fn account_of(
    state: &AppState,
    identity: &Identity,
    invitation: Option<&str>,
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<Uuid, OidcError> {
    let vault = state.keys.vault();
    let lookups = vault.lookups(&format!("{}\n{}", identity.issuer, identity.subject));
    let linked: Option<Uuid> = sqlx::query_scalar(
        "select i.user_id from vault.identities i join vault.users u on u.id = i.user_id and u.disabled_at is null
         where i.lookup = any($1)",
    )
    .bind(&lookups)
    .fetch_optional(&state.pool)
    .await?;
    let invitation = match invitation {
        Some(token) => Some(crate::commands::invitations::open(state, token, now).await?),
        None => None,
    };
    if let (Some(invitation), Some(email)) = (&invitation, &identity.verified_email) {
        invitation.is_for(state, email)?;
    }
    let mut made = false;
    let user = match (linked, &identity.verified_email) {
        (Some(user), _) => user,
        (None, None) => return Err(OidcError::NoAccount),
        (None, Some(email)) => match accounts::find(&state.pool, vault, email).await? {
            Some(found) => found.id,
            None if invitation.is_some() => {
                made = true;
                let first_part = email.split('@').next().unwrap_or_default().to_owned();
                let name = identity.name.clone().filter(|name| !name.trim().is_empty()).unwrap_or(first_part);
                let person = Person { email: email.clone(), name, password: None };
                let nobody = Actor { kind: ActorKind::Anonymous, id: "anonymous".to_owned() };
                accounts::create_person(&state.log, &state.pool, vault, person, nobody, now).await?
            }
            None => return Err(OidcError::NoAccount),
        },
    };
    if let Some(invitation) = &invitation {
        let meta = crate::commands::RequestMeta {
            correlation_id: correlation_id.unwrap_or_else(Uuid::now_v7),
            idempotency_key: None,
            now,
        };
        if let Err(error) =
            crate::commands::invitations::join(state, invitation, &user.to_string(), &meta).await
        {
            if made {
                accounts::forget(&state.pool, user).await?;
            }
            return Err(error.into());
        }
    }
    if linked.is_none() {
        link(state, user, identity, &lookups[0], correlation_id, now).await?;
    }
    Ok(user)
}

async fn link(
    state: &AppState,
    user: Uuid,
    identity: &Identity,
    lookup: &[u8],
    correlation_id: Option<Uuid>,
    now: Timestamp,
) -> Result<(), OidcError> {
    let org = accounts::memberships(&state.pool, user).await?.into_iter().next().map(|(org, _)| org);
    let stream: StreamKey = access_stream(org.as_deref().unwrap_or(events::keys::PLATFORM_ORG), user);
    let event = Event::IdentityLinked(IdentityLinked { issuer: identity.issuer.clone() });
    let actor = Actor { kind: ActorKind::User, id: user.to_string() };
    record(&state.log, stream, Expected::Any, &event, actor, correlation_id, now).await?;
    sqlx::query("insert into vault.identities (lookup, user_id, created_at) values ($1, $2, $3) on conflict do nothing")
        .bind(lookup)
        .bind(user)
        .bind(OffsetDateTime::from(now))
        .execute(&state.pool)
        .await?;
    Ok(())
}
