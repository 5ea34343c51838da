-- A mistake on purpose: lock and check in one statement, whose snapshot is older than the lock.
create or replace function __shard_management.enter(map uuid, key bytea) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock_shared(1380469828, (m.fence & 2147483647)::int)
        from __shard_management.local_mappings m
        where m.map_id = enter.map and m.low <= enter.key and (m.high is null or enter.key < m.high) and m.online;
    if not found then
        perform __shard_management.refuse(enter.map, enter.key);
    end if;
end $$;
