-- Sessions that can be listed and ended one by one, and invitations. What an invitation gives, and whether it was
-- accepted, stands in the organisation's stream; here is what its link is recognised by, and for whom it is.

alter table vault.sessions add column id uuid not null default gen_random_uuid();
alter table vault.sessions add constraint sessions_id_key unique (id);
alter table vault.sessions add column method text not null default 'password';
alter table vault.sessions add column last_used_at timestamptz;
comment on column vault.sessions.id is 'Names a session to its owner. Opens nothing.';
comment on column vault.sessions.method is 'How it began: password, oidc, invitation.';

create table vault.invitations (
    id uuid primary key,
    org text not null,
    -- of the secret in the link
    sha256 bytea not null unique,
    -- keyed hash of the one e-mail that may accept it; null: whoever has the link
    email_lookup bytea,
    created_at timestamptz not null
);

grant select, insert, update, delete on vault.invitations to benchtrail_app;
