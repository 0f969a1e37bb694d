-- Secrets that jobs need, such as a Hugging Face token: sealed, one for each account or organisation and name.

create table vault.secrets (
    id uuid primary key,
    org text not null,
    -- the account's id; empty for the organisation's own
    owner text not null,
    -- the environment variable it is released as
    name text not null,
    value_sealed bytea not null,
    -- the beginning of its SHA-256: tells two secrets apart and opens nothing
    fingerprint text not null,
    created_by text not null,
    created_at timestamptz not null,
    last_released_at timestamptz,
    unique (org, owner, name)
);

grant select, insert, update, delete on vault.secrets to benchtrail_app;
