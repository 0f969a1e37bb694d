//! Views about people: `v_organizations`, `v_members`, `v_invitations`, `v_api_tokens`, `v_sessions`, `v_secrets`,
//! `v_audit`. They
//! read the vault or the log beside the read tables, so the rule of who may see a row stands in each of them. Names come
//! with the reader (`app.people`), who was given those they may see; they are stored nowhere but sealed in the vault.

use super::{ViewDef, column};
use crate::projections::text::{Column, Kind};

/// The reader's organisation, account and whether they administer it, looked up once a statement.
const ORG: &str = "(select current_setting('app.org', true))";
const USER: &str = "(select current_setting('app.user', true))";
const ADMIN: &str = "(select current_setting('app.role', true) = 'admin')";
/// The names that the reader was given.
const PEOPLE: &str =
    "(select coalesce(nullif(current_setting('app.people', true), ''), '{}')::jsonb as known)";

fn view(name: &'static str, columns: Vec<Column>, tables: Vec<&'static str>, select: &str) -> ViewDef {
    let select = select
        .replace("$org", ORG)
        .replace("$user", USER)
        .replace("$admin", ADMIN)
        .replace("$people", PEOPLE);
    ViewDef { name, columns, tables, select, invoker: false, history: None, served: true, ranked: false }
}

pub(super) fn views() -> Vec<ViewDef> {
    vec![
        organizations(),
        members(),
        invitations(),
        api_tokens(),
        sessions(),
        secrets(),
        preferences(),
        webhooks(),
        notifications(),
        audit(),
    ]
}

/// The organisations that the reader works in.
fn organizations() -> ViewDef {
    view(
        "v_organizations",
        vec![
            column("org", Kind::Text),
            column("name", Kind::Text),
            column("role", Kind::Text),
            column("created_at", Kind::Time),
            column("position", Kind::Int),
        ],
        vec!["organizations", "members"],
        // Shown to its own members wherever they work now, hence not by the organisation of the reader's session.
        "select o.org, o.name, m.role, o.created_at, greatest(o.position, m.position) as position,
                'public' as visibility, '' as owner
           from {organizations} o join {members} m on m.org = o.org
          where m.user_id = $user and $user <> '' and m.role is not null",
    )
}

/// Who works in the reader's organisation. E-mails are for its administrators and for oneself.
fn members() -> ViewDef {
    view(
        "v_members",
        vec![
            column("org", Kind::Text),
            column("user_id", Kind::Text),
            column("name", Kind::Text),
            column("email", Kind::Text),
            column("role", Kind::Text),
            column("since", Kind::Time),
            column("position", Kind::Int),
        ],
        vec!["members"],
        "select m.org, m.user_id, p.known -> m.user_id ->> 'n' as name, p.known -> m.user_id ->> 'e' as email, m.role,
                m.since, m.position, m.visibility, m.owner
           from {members} m cross join $people p
          where m.org = $org and m.role is not null",
    )
}

/// The invitations of the reader's organisation, for its administrators.
fn invitations() -> ViewDef {
    view(
        "v_invitations",
        vec![
            column("invitation_id", Kind::Text),
            column("role", Kind::Text),
            column("state", Kind::Text),
            column("created_by", Kind::Text),
            column("created_by_name", Kind::Text),
            column("created_at", Kind::Time),
            column("expires_at", Kind::Time),
            column("accepted_at", Kind::Time),
            column("accepted_by", Kind::Text),
            column("accepted_by_name", Kind::Text),
            column("revoked_at", Kind::Time),
            column("position", Kind::Int),
        ],
        vec!["invitations"],
        "select i.invitation_id, i.role,
                case when i.accepted_at is not null then 'accepted' when i.revoked_at is not null then 'revoked'
                     when i.expires_at <= now() then 'expired' else 'open' end as state,
                i.created_by, p.known -> i.created_by ->> 'n' as created_by_name, i.created_at, i.expires_at,
                i.accepted_at, i.accepted_by, p.known -> i.accepted_by ->> 'n' as accepted_by_name, i.revoked_at,
                i.position, i.org, i.visibility, i.owner
           from {invitations} i cross join $people p
          where i.org = $org and $admin",
    )
}

/// The reader's own API tokens, and for administrators those of their organisation. Never a token itself.
fn api_tokens() -> ViewDef {
    view(
        "v_api_tokens",
        vec![
            column("token_id", Kind::Text),
            column("name", Kind::Text),
            column("scopes", Kind::Json),
            column("user_id", Kind::Text),
            column("user_name", Kind::Text),
            column("state", Kind::Text),
            column("created_at", Kind::Time),
            column("expires_at", Kind::Time),
            column("last_used_at", Kind::Time),
            column("revoked_at", Kind::Time),
        ],
        vec![],
        "select t.id::text as token_id, t.name, to_jsonb(t.scopes) as scopes, t.user_id::text as user_id,
                p.known -> t.user_id::text ->> 'n' as user_name,
                case when t.revoked_at is not null then 'revoked' when t.expires_at <= now() then 'expired'
                     else 'good' end as state,
                t.created_at, t.expires_at, t.last_used_at, t.revoked_at, t.org, 'organization' as visibility,
                '' as owner
           from vault.api_tokens t cross join $people p
          where t.org = $org and (t.user_id::text = $user or $admin)",
    )
}

/// The reader's own sessions, in whatever organisation they go on.
fn sessions() -> ViewDef {
    view(
        "v_sessions",
        vec![
            column("session_id", Kind::Text),
            column("org", Kind::Text),
            column("method", Kind::Text),
            column("created_at", Kind::Time),
            column("last_used_at", Kind::Time),
            column("expires_at", Kind::Time),
        ],
        vec![],
        "select s.id::text as session_id, s.org, s.method, s.created_at, s.last_used_at, s.expires_at,
                'public' as visibility, '' as owner
           from vault.sessions s
          where s.user_id::text = $user and $user <> '' and s.expires_at > now()",
    )
}

/// What is stored for jobs: the reader's own and the organisation's. Never a secret itself.
fn secrets() -> ViewDef {
    view(
        "v_secrets",
        vec![
            column("secret_id", Kind::Text),
            column("name", Kind::Text),
            column("scope", Kind::Text),
            column("fingerprint", Kind::Text),
            column("created_by", Kind::Text),
            column("created_by_name", Kind::Text),
            column("created_at", Kind::Time),
            column("last_released_at", Kind::Time),
        ],
        vec![],
        "select s.id::text as secret_id, s.name, case when s.owner = '' then 'organization' else 'user' end as scope,
                s.fingerprint, s.created_by, p.known -> s.created_by ->> 'n' as created_by_name, s.created_at,
                s.last_released_at, s.org, 'organization' as visibility, '' as owner
           from vault.secrets s cross join $people p
          where s.org = $org and (s.owner = '' or s.owner = $user)",
    )
}

/// Which e-mails the reader gets, the defaults included.
fn preferences() -> ViewDef {
    view(
        "v_notification_preferences",
        vec![
            column("org", Kind::Text),
            column("run_completed", Kind::Text),
            column("run_failed", Kind::Text),
            column("weekly_summary", Kind::Bool),
            column("quota", Kind::Bool),
        ],
        vec![],
        "select m.org, coalesce(p.run_completed, 'own') as run_completed, coalesce(p.run_failed, 'own') as run_failed,
                coalesce(p.weekly_summary, false) as weekly_summary, coalesce(p.quota, true) as quota,
                'organization' as visibility, '' as owner
           from vault.memberships m
           left join vault.notification_preferences p on p.org = m.org and p.user_id = m.user_id
          where m.org = $org and m.user_id::text = $user",
    )
}

/// The reader's own webhooks. Of an address only the host: the rest may be a secret.
fn webhooks() -> ViewDef {
    view(
        "v_webhooks",
        vec![
            column("webhook_id", Kind::Text),
            column("host", Kind::Text),
            column("kinds", Kind::Json),
            column("runs", Kind::Text),
            column("created_at", Kind::Time),
            column("disabled_at", Kind::Time),
        ],
        vec![],
        "select w.id::text as webhook_id, w.host, to_jsonb(w.kinds) as kinds, w.runs, w.created_at, w.disabled_at,
                w.org, 'organization' as visibility, '' as owner
           from vault.webhooks w
          where w.org = $org and w.user_id::text = $user",
    )
}

/// What was sent to the reader, is still to be sent, or was given up.
fn notifications() -> ViewDef {
    view(
        "v_notifications",
        vec![
            column("notification_id", Kind::Text),
            column("kind", Kind::Text),
            column("webhook_id", Kind::Text),
            column("source", Kind::Text),
            column("state", Kind::Text),
            column("attempts", Kind::Int),
            column("created_at", Kind::Time),
            column("due_at", Kind::Time),
            column("sent_at", Kind::Time),
            column("last_error", Kind::Text),
        ],
        vec![],
        "select o.id::text as notification_id, o.kind, o.webhook::text as webhook_id, o.source,
                case when o.sent_at is not null then 'sent' when o.given_up_at is not null then 'given_up'
                     else 'waiting' end as state,
                o.attempts::bigint as attempts, o.created_at, o.due_at, o.sent_at, o.last_error, o.org,
                'organization' as visibility, '' as owner
           from vault.outbox o
          where o.org = $org and o.user_id::text = $user",
    )
}

/// Who signed in, was refused, made or lost tokens, roles and secrets, and took data away: everybody's own doings, and
/// the whole organisation's for its administrators. Streams are found by the beginning of their names, which the index
/// on them answers: `0` is the character after the slash.
fn audit() -> ViewDef {
    view(
        "v_audit",
        vec![
            column("position", Kind::Int),
            column("recorded_at", Kind::Time),
            column("occurred_at", Kind::Time),
            column("type", Kind::Text),
            column("org", Kind::Text),
            column("actor_kind", Kind::Text),
            column("actor_id", Kind::Text),
            column("actor_name", Kind::Text),
            column("user_id", Kind::Text),
            column("user_name", Kind::Text),
            column("payload", Kind::Json),
            column("stream", Kind::Text),
            column("event_id", Kind::Text),
            column("correlation_id", Kind::Text),
            column("hash", Kind::Text),
        ],
        vec![],
        "select e.position, e.recorded_at, e.occurred_at, e.event_type as type, $org as org, e.actor_kind, e.actor_id,
                p.known -> e.actor_id ->> 'n' as actor_name, u.user_id, p.known -> u.user_id ->> 'n' as user_name,
                e.payload::jsonb as payload, s.stream_key as stream, e.event_id::text as event_id,
                e.correlation_id::text as correlation_id, encode(e.hash, 'hex') as hash,
                'organization' as visibility, '' as owner
           from (select stream_no, stream_key from public.streams
                  where stream_key >= 'access/' || $org || '/' and stream_key < 'access/' || $org || '0'
                    and $org <> '' and ($admin or stream_key = 'access/' || $org || '/' || $user)
                 union all
                 select stream_no, stream_key from public.streams where stream_key = 'org/' || $org and $org <> '') s
           join public.events e on e.stream_no = s.stream_no
          cross join $people p
          cross join lateral (
                select coalesce(e.payload::jsonb ->> 'user', nullif(split_part(s.stream_key, '/', 3), '')) as user_id) u
          where $admin or u.user_id = $user or e.actor_id = $user",
    )
}
