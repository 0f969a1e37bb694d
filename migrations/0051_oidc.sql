-- Signing in by an OpenID provider.

create table vault.oidc_attempts (
    -- of the secret in the browser's cookie
    sha256 bytea primary key,
    -- state, nonce, PKCE verifier, where to go on, an invitation: sealed
    held_sealed bytea not null,
    expires_at timestamptz not null
);

create table vault.identities (
    -- keyed hash of issuer and subject
    lookup bytea primary key,
    user_id uuid not null references vault.users (id) on delete cascade,
    created_at timestamptz not null
);
create index identities_by_user on vault.identities (user_id);

grant select, insert, update, delete on vault.oidc_attempts, vault.identities to benchtrail_app;
