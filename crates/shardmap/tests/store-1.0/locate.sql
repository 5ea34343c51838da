-- Finds a key's shard by the value of the key and the name of its map, for programs in any language. It is installed
-- beside the global map, after keys.sql, and may be installed again. To ask, a role needs only CONNECT.
--
--   select server, port, database from __shard_management.locate('tenants', 42);
--
-- If there is no row, the key has no mapping. A mapping that an operation is changing is as it was before. The shard
-- decides, and refuses transactions that come too early or too late (RH001, RH002). Then ask again.
do $$
declare
    kind text;
begin
    foreach kind in array array['bigint', 'uuid', 'bytea', 'text', 'timestamp', 'timestamptz', 'interval'] loop
        execute format($f$
            create or replace function __shard_management.locate(map text, value %s)
            returns table (mapping_id uuid, protocol text, server text, port int, database text, online bool)
            language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $b$
            declare
                named record;
                key   bytea;
            begin
                select m.map_id, m.key_type into named from __shard_management.global_maps m
                    where m.name_key = lower(locate.map);
                if not found then
                    raise exception 'there is no shard map "%%"', locate.map using errcode = 'RH003';
                end if;
                key := __shard_management.encode_key(named.key_type, value);
                return query
                    select m.mapping_id, s.protocol, s.server, s.port::int, s.database, m.online
                    from (select * from __shard_management.global_mappings g
                        where g.map_id = named.map_id and g.readable and g.low <= key order by g.low desc limit 1) m
                    join __shard_management.global_shards s on s.shard_id = m.shard_id
                    where m.high is null or key < m.high;
            end $b$;
        $f$, kind);
    end loop;
end $$;

grant usage on schema __shard_management to public;
