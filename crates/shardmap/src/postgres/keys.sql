-- For programs in any language, psql and triggers: entering a key by its value and the name of its map. The
-- bytes of a key are as in the crate's own encoding; tests compare the two. Installed after fence.sql;
-- idempotent.
--
--   select __shard_management.enter('tenants', 42);
--
-- The value's type in SQL must suit the map's key type:
--   int32, int64        smallint, integer, bigint
--   guid                uuid
--   binary              bytea
--   text                text
--   date-time           timestamp
--   date-time-offset    timestamptz
--   time-span           interval, without months and years, whose length is not fixed

-- No queries within the functions that encode: so PostgreSQL puts their text in place of the call.

-- Refuses a value whose type is not that of the keys.
create or replace function __shard_management.refuse_type(key_type text, given text) returns bytea
language plpgsql immutable parallel safe as $$
begin
    raise exception 'the keys of this shard map are of type %, and this one is %', key_type, given
        using errcode = 'RH004', hint = 'Cast the key to a type that suits the map.';
end $$;

create or replace function __shard_management.encode_key(key_type text, value bigint) returns bytea
language sql immutable parallel safe as $$
    select case key_type
        when 'int64' then case when value = -9223372036854775808 then '' else int8send(value # (-9223372036854775808)::bigint) end
        when 'int32' then case when value = -2147483648 then '' else int4send(value::int # (-2147483648)::int) end
        else __shard_management.refuse_type(key_type, 'a whole number') end
$$;

create or replace function __shard_management.encode_key(key_type text, value uuid) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'guid' then __shard_management.refuse_type(key_type, 'a uuid')
        when value = '00000000-0000-0000-0000-000000000000' then ''
        else substr(uuid_send(value), 11, 6) || substr(uuid_send(value), 9, 2)
            || substr(uuid_send(value), 8, 1) || substr(uuid_send(value), 7, 1)
            || substr(uuid_send(value), 6, 1) || substr(uuid_send(value), 5, 1)
            || substr(uuid_send(value), 4, 1) || substr(uuid_send(value), 3, 1)
            || substr(uuid_send(value), 2, 1) || substr(uuid_send(value), 1, 1) end
$$;

-- Zero bytes at the end do not count.
create or replace function __shard_management.encode_key(key_type text, value bytea) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'binary' then __shard_management.refuse_type(key_type, 'bytes')
        when length(value) > 128 then __shard_management.refuse_type(key_type, 'longer than 128 bytes')
        else rtrim(value, '\x00'::bytea) end
$$;

create or replace function __shard_management.encode_key(key_type text, value text) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'text' then __shard_management.refuse_type(key_type, 'a text')
        when octet_length(convert_to(value, 'UTF8')) > 128 then __shard_management.refuse_type(key_type, 'longer than 128 bytes')
        else convert_to(value, 'UTF8') end
$$;

-- Ticks of 100 ns since the year 1; PostgreSQL counts microseconds.
create or replace function __shard_management.ticks(value timestamp) returns bigint
language sql immutable parallel safe as $$ select (extract(epoch from value) * 10000000)::bigint + 621355968000000000 $$;

create or replace function __shard_management.encode_key(key_type text, value timestamp) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'date-time' then __shard_management.refuse_type(key_type, 'a timestamp without time zone')
        when value < '0001-01-01' or value >= '10000-01-01' then __shard_management.refuse_type(key_type, 'not of the years 1 to 9999')
        when value = '0001-01-01' then ''
        else int8send(__shard_management.ticks(value) # (-9223372036854775808)::bigint) end
$$;

-- The instant alone counts, so the offset is written as zero.
create or replace function __shard_management.encode_key(key_type text, value timestamptz) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'date-time-offset' then __shard_management.refuse_type(key_type, 'a timestamp with time zone')
        when value < '0001-01-01 00:00+00' or value >= '10000-01-01 00:00+00'
            then __shard_management.refuse_type(key_type, 'not of the years 1 to 9999')
        when value = '0001-01-01 00:00+00' then ''
        else int8send(__shard_management.ticks(value at time zone 'UTC') # (-9223372036854775808)::bigint)
            || '\x8000000000000000' end
$$;

create or replace function __shard_management.encode_key(key_type text, value interval) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'time-span' then __shard_management.refuse_type(key_type, 'an interval')
        when extract(year from value) <> 0 or extract(month from value) <> 0
            then __shard_management.refuse_type(key_type, 'an interval with months')
        else int8send((extract(epoch from value) * 10000000)::bigint # (-9223372036854775808)::bigint) end
$$;

-- A map of this database by its name, in whatever case.
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

-- `enter(map, value)` and `owns(map, value)` for each type; a NULL is no key.
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
