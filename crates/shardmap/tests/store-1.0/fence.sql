-- The fence: it keeps a transaction from running on a key that this database does not hold. It is installed after
-- local.sql, and may be installed again.
--
-- A transaction *enters* a key before it touches the key's rows. From then to its end it holds the fence
-- of the key's mapping, a shared advisory lock. A change that takes a key away changes the mapping's row, and is
-- done when no transaction holds the fence any more. So at each moment at least one of two is true: the transaction
-- that enters sees the change, or the change sees the lock. One point is subtle, the snapshot in which the row is
-- read:
--
--   * READ COMMITTED: the row is read again in a *new* statement after the lock is taken. In one statement
--     with the lock, the snapshot would be older than the lock: a change made while we waited is not seen.
--     A volatile function in plpgsql takes a new snapshot for each of its statements.
--   * REPEATABLE READ, SERIALIZABLE: the snapshot is as old as the transaction, and the function cannot change that.
--     So the row is read FOR SHARE, which fails with 40001 if the row was changed or deleted since the snapshot;
--     and every change of a mapping deletes or updates its row.
--   * READ ONLY above READ COMMITTED can't lock rows, and need not: it sees the database as it was when the
--     key was here.
--
-- Errors, of a class of their own. For all but RH003, RH004 and RH006 it is worth trying again:
--   RH001  the key is not in this database        (look the key up again, go where it is)
--   RH002  the key's mapping is offline           (wait, try again)
--   RH003  there is no such shard map here        (look the shard map up again; is it the right database?)
--   RH004  the map's keys are not of that type
--   RH005  the key's mapping changed again and again while the transaction tried to enter
--   RH006  a guarded table can't be truncated
--
-- The functions run with the rights of the role that installed them, so a role that may read and write its own
-- tables needs no rights on the tables of this schema. The search path is pinned for that reason.

-- The number of a fence's advisory lock. The class of these locks is 1380469828, which is 'RHLD' in ASCII, and the
-- number is the low 31 bits of the fence. If two fences have the same number, which happens once in two billion, they
-- wait for each other. That is the only harm.
create or replace function __shard_management.fence_number(fence bigint) returns int
language sql immutable parallel safe as $$ select (fence & 2147483647)::int $$;

-- Enters a key. `key` is in the order-preserving encoding. Returns when the transaction may touch the key's rows.
create or replace function __shard_management.enter(map uuid, key bytea) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    seen   bigint;  -- the fence that the row had when we chose the lock
    fence  bigint;  -- the fence that it has under the lock
    high   bytea;
    online bool;
    share  bool := current_setting('transaction_isolation') in ('repeatable read', 'serializable')
                   and not current_setting('transaction_read_only')::bool;
begin
    select m.fence, m.high, m.online into seen, high, online from __shard_management.local_mappings m
        where m.map_id = enter.map and m.low <= enter.key order by m.low desc limit 1;
    for trial in 1..10 loop
        -- A refusal is always safe. So it comes at once, before any lock is taken.
        if seen is null or high <= enter.key then
            perform __shard_management.refuse(enter.map, enter.key);
        elsif not online then
            raise exception 'the mapping of key \x% is offline', encode(enter.key, 'hex') using errcode = 'RH002',
                hint = 'Wait until the mapping is online, then try the whole transaction again.';
        end if;
        perform pg_advisory_xact_lock_shared(1380469828, (seen & 2147483647)::int);
        if share then
            select m.fence, m.high, m.online into fence, high, online from __shard_management.local_mappings m
                where m.map_id = enter.map and m.low <= enter.key order by m.low desc limit 1 for share;
        else
            select m.fence, m.high, m.online into fence, high, online from __shard_management.local_mappings m
                where m.map_id = enter.map and m.low <= enter.key order by m.low desc limit 1;
        end if;
        if fence = seen and online and (high is null or enter.key < high) then
            return;
        end if;
        seen := fence;
    end loop;
    raise exception 'the mapping of key \x% changes all the time', encode(enter.key, 'hex') using errcode = 'RH005',
        hint = 'Try the whole transaction again.';
end $$;

-- Says why a key is refused: there is no such map here, or there is, and the key is elsewhere.
create or replace function __shard_management.refuse(map uuid, key bytea) returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not exists (select from __shard_management.local_maps m where m.map_id = refuse.map) then
        raise exception 'there is no shard map % in this database', refuse.map using errcode = 'RH003',
            hint = 'Look the shard map up in the global map; was it deleted, or is this not one of its shards?';
    end if;
    raise exception 'key \x% is not in this database', encode(refuse.key, 'hex') using errcode = 'RH001',
        hint = 'Look the key up in the shard map again, and try the whole transaction where it is.';
end $$;

-- Whether this database holds a key, online or offline, in the snapshot of the statement that asks. It is for queries
-- over all shards. It takes no lock and fences nothing.
create or replace function __shard_management.owns(map uuid, key bytea) returns bool
language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
declare
    found_high bytea;
begin
    select m.high into found_high from __shard_management.local_mappings m
        where m.map_id = owns.map and m.low <= owns.key order by m.low desc limit 1;
    return found and (found_high is null or owns.key < found_high);
end $$;

-- The version of a map in this database: it grows with each change that was written here. NULL if the map was
-- never here.
create or replace function __shard_management.map_version(map uuid) returns bigint
language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
    select e.epoch from __shard_management.local_epochs e where e.map_id = map_version.map
$$;

-- For changes that take keys away: waits until no transaction holds one of the fences, and lets none enter before
-- this transaction ends. Fails with 55P03 if one fence takes longer than `wait_ms`. It is called before the rows are
-- deleted, in the same transaction. So a transaction that wants to enter waits for this lock and then sees the
-- changed row. And FOR SHARE locks cannot be renewed again and again by later transactions. Fences are closed in the
-- order of their numbers, so that two closers never wait for each other.
create or replace function __shard_management.close_fences(fences bigint[], wait_ms bigint) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    before text := current_setting('lock_timeout');
    number int;
begin
    perform set_config('lock_timeout', wait_ms::text, true);
    for number in select distinct (fence & 2147483647)::int n from unnest(fences) fence order by n loop
        perform pg_advisory_xact_lock(1380469828, number);
    end loop;
    perform set_config('lock_timeout', before, true);
end $$;

-- The sessions of this database whose transaction holds one of the fences. The time at which the transaction began
-- distinguishes it from a later transaction of the same session.
create or replace function __shard_management.fence_holders(fences bigint[])
returns table (pid int, began timestamptz, state text, user_name text)
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select a.pid, a.xact_start, a.state, a.usename::text
        from pg_locks l join pg_stat_activity a on a.pid = l.pid
        where l.locktype = 'advisory' and l.classid = 1380469828 and l.objsubid = 2 and l.granted
            and l.mode = 'ShareLock'
            and l.database = (select oid from pg_database where datname = current_database())
            and l.objid in (select (fence & 2147483647)::int::oid from unnest(fences) fence)
$$;

-- All roles may enter. The tables, and the functions for operators, stay closed to them.
grant usage on schema __shard_management to public;
revoke all on function __shard_management.close_fences(bigint[], bigint) from public;
revoke all on function __shard_management.fence_holders(bigint[]) from public;
