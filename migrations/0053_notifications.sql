-- Notifications: who wants which, where webhooks go, and what is still to be sent.

create table vault.notification_preferences (
    org text not null,
    user_id uuid not null references vault.users (id) on delete cascade,
    run_completed text not null check (run_completed in ('off', 'own', 'all')),
    run_failed text not null check (run_failed in ('off', 'own', 'all')),
    weekly_summary boolean not null,
    quota boolean not null,
    primary key (org, user_id)
);

create table vault.webhooks (
    id uuid primary key,
    org text not null,
    user_id uuid not null references vault.users (id) on delete cascade,
    -- the address can hold a secret of its owner's, so it is sealed; the host is shown
    url_sealed bytea not null,
    host text not null,
    secret_sealed bytea not null,
    kinds text[] not null,
    runs text not null check (runs in ('own', 'all')),
    created_at timestamptz not null,
    disabled_at timestamptz
);
create index webhooks_by_user on vault.webhooks (org, user_id);

-- One row for each message: an event (or a week) for one account on one channel. Its id follows from these, so that it
-- is made once; and it is sent under that id, so that a receiver can tell a second copy.
create table vault.outbox (
    id uuid primary key,
    org text not null,
    user_id uuid not null references vault.users (id) on delete cascade,
    -- null: by e-mail
    webhook uuid references vault.webhooks (id) on delete cascade,
    kind text not null,
    -- the id of the event it is about, or the week
    source text not null,
    content jsonb not null,
    created_at timestamptz not null,
    due_at timestamptz not null,
    attempts integer not null default 0,
    sent_at timestamptz,
    given_up_at timestamptz,
    last_error text
);
create index outbox_due on vault.outbox (due_at) where sent_at is null and given_up_at is null;
create index outbox_by_user on vault.outbox (user_id, created_at);

create table vault.notification_cursor (
    singleton boolean primary key default true check (singleton),
    -- the log's last position whose messages are in the outbox
    position bigint not null,
    -- the end of the last week that was summed up
    weekly_until timestamptz not null
);

grant select, insert, update, delete
    on vault.notification_preferences, vault.webhooks, vault.outbox, vault.notification_cursor to benchtrail_app;
