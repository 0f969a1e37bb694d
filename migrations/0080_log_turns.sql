-- Appends take their turn before they write. A batch may still be sent before the one before it is committed: the
-- database has it, taken apart and ready, and begins the moment the head is free, without a round trip in between. Rows
-- that two transactions wrote at the same time went into the same index pages from both sides, which cost more than the
-- flush that it hid.
create or replace function log_append(
    p_position bigint, p_hash bytea, p_streams bigint,
    p_new_hash bytea, p_recorded_at timestamptz,
    p_created_no bigint[], p_created_key text[], p_created_version bigint[],
    p_moved_no bigint[], p_moved_from bigint[], p_moved_to bigint[],
    p_rows log_row[]
) returns boolean
    language plpgsql security definer set search_path = public, pg_temp as $$
declare
    head record;
    moved bigint;
begin
    -- Who wants the log to himself takes this lock whole.
    perform pg_advisory_xact_lock_shared(4711250021);
    -- The turn: waits until the batch before is committed or gone. This is the fence: nobody else's append lies between
    -- the caller's knowledge and this one. What follows is seen as it is after that commit.
    select h.position, h.hash, h.streams into head from log_head h where h.singleton for update;
    if head.position > p_position then
        return false;
    end if;
    if head.position <> p_position or head.hash <> p_hash or head.streams <> p_streams then
        raise exception 'the head of the log is at %, not at %', head.position, p_position using errcode = 'BT002';
    end if;
    update log_head h
       set position = p_position + cardinality(p_rows),
           hash = p_new_hash,
           streams = p_streams + cardinality(p_created_no)
     where h.singleton;

    insert into event_ids (event_id, position)
    select u.event_id, p_position + u.nth from unnest(p_rows) with ordinality as u (
           stream_no, version, occurred_at, event_id, schema_version, event_type, org, actor_kind, actor_id,
           causation_id, correlation_id, payload, hash, nth);

    insert into events (position, stream_no, version, occurred_at, recorded_at, event_id, schema_version, event_type,
                        org, actor_kind, actor_id, causation_id, correlation_id, payload, hash)
    select p_position + u.nth, u.stream_no, u.version, u.occurred_at, p_recorded_at, u.event_id, u.schema_version,
           u.event_type, u.org, u.actor_kind, u.actor_id, u.causation_id, u.correlation_id, u.payload, u.hash
      from unnest(p_rows) with ordinality as u (
           stream_no, version, occurred_at, event_id, schema_version, event_type, org, actor_kind, actor_id,
           causation_id, correlation_id, payload, hash, nth);

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
    return true;
end $$;
comment on function log_append is 'The only way into events. Waits for its turn at the head, fences there, keeps the ids unique, inserts, moves the streams. Returns false, having changed nothing, where the head has passed the one that the batch was prepared for; raises BT002 where it is another, BT001 where a stream is not at the version it was prepared for, unique_violation where a stream, an event id or a position is already there. Each of these rolls the whole batch back.';
