-- The vault: what must never stand in the log, because it must stay erasable or secret. Names and e-mails are sealed
-- (XChaCha20-Poly1305, key in a file beside the log's), passwords are argon2id, tokens are SHA-256.
create schema if not exists vault;

do $$ begin
    if not exists (select from pg_roles where rolname = 'benchtrail_app') then
        create role benchtrail_app nologin;
    end if;
    if not exists (select from pg_roles where rolname = 'benchtrail_reader') then
        create role benchtrail_reader nologin;
    end if;
end $$;

create table vault.users (
    id uuid primary key,
    -- keyed hash of the e-mail in lower case: how a sign-in finds its account
    email_lookup bytea not null unique,
    email_sealed bytea not null,
    name_sealed bytea not null,
    -- argon2id in PHC format, which names its own parameters; null: this account has no password
    password_hash text,
    created_at timestamptz not null,
    disabled_at timestamptz
);

-- Who works where. Folded from the org/<org> streams, which are the truth; kept here so that a request costs one query.
create table vault.memberships (
    org text not null,
    user_id uuid not null,
    role text not null check (role in ('viewer', 'member', 'admin')),
    -- the position of the org's event this row stands for
    position bigint not null,
    primary key (org, user_id)
);
create index memberships_by_user on vault.memberships (user_id);

create table vault.sessions (
    sha256 bytea primary key,
    user_id uuid not null references vault.users (id) on delete cascade,
    org text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null
);
create index sessions_by_user on vault.sessions (user_id);
create index sessions_by_expiry on vault.sessions (expires_at);

create table vault.api_tokens (
    id uuid primary key,
    user_id uuid not null references vault.users (id) on delete cascade,
    org text not null,
    name text not null,
    scopes text[] not null,
    sha256 bytea not null unique,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    last_used_at timestamptz,
    revoked_at timestamptz
);
create index api_tokens_by_user on vault.api_tokens (user_id);

create table vault.agents (
    org text not null,
    -- the agent's name, <config>~<hostname>
    agent text not null,
    -- the server's stream key
    server text not null,
    token_sha256 bytea not null unique,
    nats_public_key text not null,
    enrolled_at timestamptz not null,
    revoked_at timestamptz,
    primary key (org, agent)
);

create table vault.enrol_tokens (
    sha256 bytea primary key,
    org text not null,
    -- the stream key of the server it is for
    server text not null,
    created_by text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    used_at timestamptz
);

-- Answers kept for Idempotency-Key, sealed, because an answer can hold a token that is shown once.
create table vault.idempotency_keys (
    principal text not null,
    command text not null,
    key text not null,
    body_sha256 bytea not null,
    created_at timestamptz not null,
    -- null while the first request is at work
    reply_sealed bytea,
    primary key (principal, command, key)
);
create index idempotency_keys_by_age on vault.idempotency_keys (created_at);

grant usage on schema vault to benchtrail_app;
grant select, insert, update, delete on all tables in schema vault to benchtrail_app;
