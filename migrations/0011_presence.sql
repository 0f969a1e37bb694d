-- What changes with every heartbeat and is therefore neither an event nor part of a projection: when an agent was last
-- heard of, and until when it holds its attempts. Transitions (online, stale, offline, lost) are events.
create table presence (
    agent_org text not null,
    agent text not null,
    last_seen timestamptz not null,
    -- the last state that was made an event: registered, online, stale, offline, requires_reonboarding
    state text not null,
    -- reports in the agent's spool that were not acknowledged at its last heartbeat
    spooled bigint not null default 0,
    -- milliseconds the agent's clock was ahead of ours at its last heartbeat, travel time included
    clock_offset_ms double precision,
    primary key (agent_org, agent)
);

create table leases (
    -- the job's stream key
    job_key text not null,
    attempt integer not null,
    agent text not null,
    expires_at timestamptz not null,
    primary key (job_key, attempt)
);
create index leases_by_expiry on leases (expires_at);

grant select, insert, update, delete on presence, leases to benchtrail_app;
-- Last-seen is shown beside the projected server rows.
grant select on presence to benchtrail_reader;
