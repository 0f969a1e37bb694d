-- The event log: one table, one global order without gaps, a hash chain, and nothing that can be altered.

-- Roles belong to the whole cluster, so another database may have made them already, or may be making them now.
do $$ begin
    create role benchtrail_app nologin;
exception when duplicate_object or unique_violation then null;
end $$;
do $$ begin
    create role benchtrail_reader nologin;
exception when duplicate_object or unique_violation then null;
end $$;
do $$ begin
    -- A superuser may take any role. Anybody else must be a member to take it.
    if not (select rolsuper from pg_roles where rolname = current_user) then
        execute format('grant benchtrail_app, benchtrail_reader to %I', current_user);
    end if;
exception when unique_violation then null;
end $$;

grant usage on schema public to benchtrail_app, benchtrail_reader;

create table log_head (
    singleton boolean primary key default true check (singleton),
    position bigint not null,
    hash bytea not null check (length(hash) = 32),
    streams bigint not null
) with (fillfactor = 10);
comment on table log_head is 'The end of the log: one row, whose lock makes appends take turns and whose content fences them.';
comment on column log_head.position is 'Position of the last event; 0 while there is none.';
comment on column log_head.hash is 'Chain hash at that position; 32 zero bytes before the first event.';
comment on column log_head.streams is 'The number given to the last new stream.';
insert into log_head (position, hash, streams) values (0, decode(repeat('00', 32), 'hex'), 0);

create table streams (
    stream_no bigint primary key,
    stream_key text collate "C" not null,
    version bigint not null check (version > 0),
    constraint streams_stream_key_key unique (stream_key)
) with (fillfactor = 70);
comment on table streams is 'One row for each stream: its natural key, and the version of its last event.';
comment on column streams.stream_no is 'Stands for the key in events, to keep rows short. Never leaves the database.';

create table event_ids (
    event_id uuid primary key,
    position bigint not null
);
comment on table event_ids is 'Where each event id stands: what makes a resend harmless. (A unique constraint on events itself would have to include the partition key.)';

create table events (
    position bigint not null,
    stream_no bigint not null,
    version bigint not null,
    occurred_at timestamptz not null,
    recorded_at timestamptz not null,
    event_id uuid not null,
    schema_version integer not null,
    event_type text collate "C" not null,
    org text collate "C" not null,
    actor_kind text collate "C" not null,
    actor_id text collate "C" not null,
    causation_id uuid,
    correlation_id uuid,
    payload text collate "C" not null,
    hash bytea not null,
    primary key (position)
) partition by range (position);
create index events_stream on events (stream_no, version);
comment on table events is 'Every event, in one order without gaps. Inserted by log_append alone; never updated, never deleted.';
comment on column events.position is 'Place in the global order, from 1. Commit order is position order.';
comment on column events.version is 'Place in the stream, from 1, without a gap.';
comment on column events.occurred_at is 'When it happened, by the sender''s clock.';
comment on column events.recorded_at is 'When the control plane took it, by its own clock.';
comment on column events.payload is 'The exact canonical JSON that was hashed. Cast to jsonb to query it.';
comment on column events.hash is 'SHA-256 of the previous position''s hash and this event''s leaf.';

create table checkpoints (
    position bigint primary key,
    previous_position bigint not null unique check (previous_position >= 0 and previous_position < position),
    hash bytea not null check (length(hash) = 32),
    root bytea not null check (length(root) = 32),
    public_key bytea not null check (length(public_key) = 32),
    signature bytea not null check (length(signature) = 64),
    created_at timestamptz not null default clock_timestamp()
);
comment on table checkpoints is 'Signed states of the log, each chained to the one before. Keep copies elsewhere: they find a rewritten log.';
comment on column checkpoints.root is 'Root of the Merkle tree (RFC 6962) over the leaves after previous_position.';

-- Nothing that was written is ever changed. The grants below say so to the control plane's role; these triggers say it
-- to everybody, owners included.
create function log_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% on % is refused: the event log is immutable', tg_op, tg_table_name
        using errcode = 'insufficient_privilege',
              hint = 'Append an event that corrects the earlier one.';
end $$;
comment on function log_refuse_change() is 'Raises: what is in the log stays as it is.';

create trigger events_immutable before update or delete on events
    for each row execute function log_refuse_change();
create trigger events_not_truncated before truncate on events
    for each statement execute function log_refuse_change();
create trigger event_ids_immutable before update or delete or truncate on event_ids
    for each statement execute function log_refuse_change();
create trigger streams_not_deleted before delete or truncate on streams
    for each statement execute function log_refuse_change();
create trigger log_head_not_deleted before delete or truncate on log_head
    for each statement execute function log_refuse_change();
create trigger checkpoints_immutable before update or delete or truncate on checkpoints
    for each statement execute function log_refuse_change();

-- Makes the partition that holds a position, and the one after it. A partition is made as a table of its own and then
-- attached, because attaching leaves readers and appenders alone.
create function log_ensure_partitions(p_position bigint) returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
declare
    size constant bigint := 1000000;
    first bigint;
    name text;
begin
    for first in
        select n * size from generate_series(p_position / size, p_position / size + 1) n
    loop
        name := 'events_' || lpad((first / size)::text, 6, '0');
        continue when to_regclass('public.' || name) is not null;
        perform pg_advisory_xact_lock(hashtext('benchtrail log partitions'));
        continue when to_regclass('public.' || name) is not null;
        execute format('create table %I (like events including defaults including constraints including comments)', name);
        execute format('create trigger events_not_truncated before truncate on %I for each statement execute function log_refuse_change()', name);
        execute format('comment on table %I is %L', name, format('Positions %s to %s of events.', first, first + size - 1));
        execute format('alter table events attach partition %I for values from (%s) to (%s)', name, first, first + size);
    end loop;
end $$;
comment on function log_ensure_partitions(bigint) is 'Makes the partition of events that holds a position and the one after it. Safe to call at any time.';

-- The head, locked until the transaction ends: for an appender that was overtaken too often.
create function log_lock_head(out "position" bigint, out hash bytea, out streams bigint)
    language sql security definer set search_path = public, pg_temp as $$
    select h.position, h.hash, h.streams from log_head h where h.singleton for update
$$;
comment on function log_lock_head() is 'Locks the end of the log and returns it.';

-- Appends one batch in one round trip. Returns false, having changed nothing, where the head is no longer the one the
-- batch was prepared for. Raises BT001 where a stream is not at the version it was prepared for, and unique_violation
-- where a stream or an event id is already there; either rolls the whole batch back.
create function log_append(
    p_position bigint, p_hash bytea, p_streams bigint,
    p_new_hash bytea, p_recorded_at timestamptz,
    p_created_no bigint[], p_created_key text[], p_created_version bigint[],
    p_moved_no bigint[], p_moved_from bigint[], p_moved_to bigint[],
    p_stream_no bigint[], p_version bigint[], p_occurred_at timestamptz[], p_event_id uuid[],
    p_schema_version integer[], p_event_type text[], p_org text[], p_actor_kind text[], p_actor_id text[],
    p_causation_id uuid[], p_correlation_id uuid[], p_payload text[], p_event_hash bytea[]
) returns boolean
    language plpgsql security definer set search_path = public, pg_temp as $$
declare
    moved bigint;
begin
    -- Takes the head's lock, and is the fence: nobody else's append lies between the caller's knowledge and this one.
    update log_head h
       set position = p_position + cardinality(p_event_id),
           hash = p_new_hash,
           streams = p_streams + cardinality(p_created_no)
     where h.singleton and h.position = p_position and h.hash = p_hash and h.streams = p_streams;
    if not found then
        return false;
    end if;

    if cardinality(p_created_no) > 0 then
        insert into streams (stream_no, stream_key, version)
        select * from unnest(p_created_no, p_created_key, p_created_version);
    end if;

    if cardinality(p_moved_no) > 0 then
        update streams s
           set version = u.moved_to
          from unnest(p_moved_no, p_moved_from, p_moved_to) as u (stream_no, moved_from, moved_to)
         where s.stream_no = u.stream_no and s.version = u.moved_from;
        get diagnostics moved = row_count;
        if moved <> cardinality(p_moved_no) then
            raise exception 'a stream is not at the version expected' using errcode = 'BT001';
        end if;
    end if;

    insert into event_ids (event_id, position)
    select u.event_id, p_position + u.nth from unnest(p_event_id) with ordinality as u (event_id, nth);

    insert into events (position, stream_no, version, occurred_at, recorded_at, event_id, schema_version, event_type,
                        org, actor_kind, actor_id, causation_id, correlation_id, payload, hash)
    select p_position + u.nth, u.stream_no, u.version, u.occurred_at, p_recorded_at, u.event_id, u.schema_version,
           u.event_type, u.org, u.actor_kind, u.actor_id, u.causation_id, u.correlation_id, u.payload, u.hash
      from unnest(p_stream_no, p_version, p_occurred_at, p_event_id, p_schema_version, p_event_type, p_org,
                  p_actor_kind, p_actor_id, p_causation_id, p_correlation_id, p_payload, p_event_hash)
           with ordinality as u (stream_no, version, occurred_at, event_id, schema_version, event_type, org,
                  actor_kind, actor_id, causation_id, correlation_id, payload, hash, nth);
    return true;
end $$;
comment on function log_append is 'The only way into events. Fences on the head, moves the streams, keeps the ids unique, inserts.';

revoke all on log_head, streams, event_ids, events, checkpoints from public;
revoke all on function log_ensure_partitions(bigint), log_lock_head(), log_append from public;
grant select on log_head, streams, event_ids, events, checkpoints to benchtrail_app;
grant insert on checkpoints to benchtrail_app;
grant execute on function log_ensure_partitions(bigint), log_lock_head(), log_append to benchtrail_app;

select log_ensure_partitions(1);
