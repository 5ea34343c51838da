-- A mistake on purpose: above READ COMMITTED the row is read without FOR SHARE, so in the old snapshot.
create or replace function __shard_management.enter(map uuid, key bytea) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    seen   bigint;  -- the fence that the row had when we chose the lock
    fence  bigint;  -- the fence that it has under the lock
    high   bytea;
    online bool;
begin
    select m.fence, m.high, m.online into seen, high, online from __shard_management.local_mappings m
        where m.map_id = enter.map and m.low <= enter.key order by m.low desc limit 1;
    for trial in 1..10 loop
        -- Refused at once, before any lock: to refuse is always safe.
        if seen is null or high <= enter.key then
            perform __shard_management.refuse(enter.map, enter.key);
        elsif not online then
            raise exception 'the mapping of key \x% is offline', encode(enter.key, 'hex') using errcode = 'RH002',
                hint = 'Wait until the mapping is online, then try the whole transaction again.';
        end if;
        perform pg_advisory_xact_lock_shared(1380469828, (seen & 2147483647)::int);
        select m.fence, m.high, m.online into fence, high, online from __shard_management.local_mappings m
            where m.map_id = enter.map and m.low <= enter.key order by m.low desc limit 1;
        if fence = seen and online and (high is null or enter.key < high) then
            return;
        end if;
        seen := fence;
    end loop;
    raise exception 'the mapping of key \x% changes all the time', encode(enter.key, 'hex') using errcode = 'RH005',
        hint = 'Try the whole transaction again.';
end $$;
