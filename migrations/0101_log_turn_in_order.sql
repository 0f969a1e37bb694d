-- Appends that overlap, one writing at a time. 0021 let two batches write side by side, and they met in the same index
-- pages; 0080 let the next one begin when the one before it was committed, and the flush hid nothing. Now the next one
-- begins when the one before it has written: its rows go in while that one is flushed, and only at the head does it wait
-- for the commit. It commits after its predecessor or not at all, so that readers still see positions without gaps and
-- nothing that a crash could take back.
--
-- Advisory locks, in the order in which they are taken:
--   4711250021            shared by every append until its transaction ends; who wants the log to himself takes it whole.
--   4711250022            the turn to write: a session's, because it is given on before the transaction ends. An error
--                         leaves it with the session, so that a connection on which an append failed must be closed.
--   (4711250, position)   the batch that ends at that position has begun to write; until its transaction ends.
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
    looks integer := 0;
begin
    perform pg_advisory_xact_lock_shared(4711250021);
    loop
        perform pg_advisory_lock(4711250022);
        select h.position into head from log_head h where h.singleton;
        exit when head.position = p_position;
        -- Already overtaken: nothing is written that would have to be taken back.
        if head.position > p_position then
            perform pg_advisory_unlock(4711250022);
            return false;
        end if;
        -- The batch before is not committed yet. Has it written?
        exit when not pg_try_advisory_lock_shared(4711250, (p_position & 2147483647)::integer);
        -- No: it was sent first, by another connection, and this one was quicker. It will be here in a moment.
        perform pg_advisory_unlock_shared(4711250, (p_position & 2147483647)::integer);
        perform pg_advisory_unlock(4711250022);
        looks := looks + 1;
        if looks = 200 then
            raise exception 'the head of the log is at %, and nobody is about to move it to %', head.position, p_position
                using errcode = 'BT002';
        end if;
        perform pg_sleep(0.00005);
    end loop;
    perform pg_advisory_xact_lock(4711250, ((p_position + cardinality(p_rows)) & 2147483647)::integer);

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

    -- Waits until the batch before is committed or gone. This is the fence: nobody else's append lies between the
    -- caller's knowledge and this one. What follows is seen as it is after that commit.
    select h.position, h.hash, h.streams into head from log_head h where h.singleton for update;
    if head.position <> p_position or head.hash <> p_hash or head.streams <> p_streams then
        raise exception 'the head of the log is at %, not at %', head.position, p_position using errcode = 'BT002';
    end if;
    update log_head h
       set position = p_position + cardinality(p_rows),
           hash = p_new_hash,
           streams = p_streams + cardinality(p_created_no)
     where h.singleton;

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
    perform pg_advisory_unlock(4711250022);
    return true;
end $$;
comment on function log_append is 'The only way into events. Waits for its turn to write, keeps the ids unique, inserts, waits at the head for the commit before it, fences there, moves the streams and gives the turn on. Returns false, having changed nothing, where the head has passed the one that the batch was prepared for; raises BT002 where it turns out to be another, BT001 where a stream is not at the version it was prepared for, unique_violation where a stream, an event id or a position is already there. Each of these rolls the whole batch back and leaves the turn with the session: close the connection.';
