-- Enters a key by its value and the name of its map, for programs in any language, psql and triggers. It is installed
-- after fence.sql and keys.sql, and may be installed again.
--
--   select __shard_management.enter('tenants', 42);

-- A map of this database, found by its name without regard to case.
create or replace function __shard_management.map_named(name text, out map_id uuid, out key_type text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    select m.map_id, m.key_type into map_named.map_id, map_named.key_type from __shard_management.local_maps m
        where m.name = map_named.name or lower(m.name) = lower(map_named.name)
        order by m.name = map_named.name desc limit 1;
    if not found then
        raise exception 'there is no shard map "%" in this database', map_named.name using errcode = 'RH003',
            hint = 'Look the shard map up in the global map; was it deleted, or is this not one of its shards?';
    end if;
end $$;

-- `enter(map, value)` and `owns(map, value)` for each type; NULL is not a key.
do $$
declare
    kind text;
begin
    foreach kind in array array['bigint', 'uuid', 'bytea', 'text', 'timestamp', 'timestamptz', 'interval'] loop
        execute format($f$
            create or replace function __shard_management.enter(map text, value %s) returns void
            language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $b$
            declare
                named record;
            begin
                if value is null then
                    raise exception 'a key cannot be NULL' using errcode = 'RH004';
                end if;
                named := __shard_management.map_named(map);
                perform __shard_management.enter(named.map_id, __shard_management.encode_key(named.key_type, value));
            end $b$;
            create or replace function __shard_management.owns(map text, value %s) returns bool
            language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $b$
            declare
                named record := __shard_management.map_named(map);
            begin
                return value is not null
                    and __shard_management.owns(named.map_id, __shard_management.encode_key(named.key_type, value));
            end $b$;
        $f$, kind, kind);
    end loop;
end $$;
