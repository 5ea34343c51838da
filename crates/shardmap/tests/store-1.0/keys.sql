-- Keys as bytes, for programs in any language. The encoding is the crate's own, and tests compare the two. It is
-- installed in shards and beside the global map, and may be installed again.
--
-- The type of the value in SQL must fit the key type of the map:
--   int32, int64        smallint, integer, bigint
--   guid                uuid
--   binary              bytea
--   text                text
--   date-time           timestamp
--   date-time-offset    timestamptz
--   time-span           interval, without months and years, because these have no fixed length

-- The functions that encode do not query tables, so that PostgreSQL can inline them.

-- Refuses a value whose type is not that of the keys. It also gets the value. Otherwise PostgreSQL would call it
-- while it plans, because a call with only constants is made then, even if the call is in a branch that is never
-- taken.
create or replace function __shard_management.refuse_type(key_type text, given text, value text) returns bytea
language plpgsql immutable parallel safe as $$
begin
    raise exception 'the keys of this shard map are of type %, and this one is %', key_type, given
        using errcode = 'RH004', detail = 'The value is ' || coalesce(left(value, 100), 'null') || '.',
            hint = 'Cast the key to a type that suits the map.';
end $$;

create or replace function __shard_management.encode_key(key_type text, value bigint) returns bytea
language sql immutable parallel safe as $$
    select case key_type
        when 'int64' then case when value = -9223372036854775808 then '' else int8send(value # (-9223372036854775808)::bigint) end
        when 'int32' then case when value = -2147483648 then '' else int4send(value::int # (-2147483648)::int) end
        else __shard_management.refuse_type(key_type, 'a whole number', value::text) end
$$;

create or replace function __shard_management.encode_key(key_type text, value uuid) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'guid' then __shard_management.refuse_type(key_type, 'a uuid', value::text)
        when value = '00000000-0000-0000-0000-000000000000' then ''
        else substr(uuid_send(value), 11, 6) || substr(uuid_send(value), 9, 2)
            || substr(uuid_send(value), 8, 1) || substr(uuid_send(value), 7, 1)
            || substr(uuid_send(value), 6, 1) || substr(uuid_send(value), 5, 1)
            || substr(uuid_send(value), 4, 1) || substr(uuid_send(value), 3, 1)
            || substr(uuid_send(value), 2, 1) || substr(uuid_send(value), 1, 1) end
$$;

-- Zero bytes at the end do not belong to a key.
create or replace function __shard_management.encode_key(key_type text, value bytea) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'binary' then __shard_management.refuse_type(key_type, 'bytes', encode(value, 'hex'))
        when length(value) > 128 then __shard_management.refuse_type(key_type, 'longer than 128 bytes', encode(value, 'hex'))
        else rtrim(value, '\x00'::bytea) end
$$;

create or replace function __shard_management.encode_key(key_type text, value text) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'text' then __shard_management.refuse_type(key_type, 'a text', value)
        when octet_length(convert_to(value, 'UTF8')) > 128 then __shard_management.refuse_type(key_type, 'longer than 128 bytes', value)
        else convert_to(value, 'UTF8') end
$$;

-- Ticks of 100 ns since the year 1. PostgreSQL counts microseconds.
create or replace function __shard_management.ticks(value timestamp) returns bigint
language sql immutable parallel safe as $$ select (extract(epoch from value) * 10000000)::bigint + 621355968000000000 $$;

create or replace function __shard_management.encode_key(key_type text, value timestamp) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'date-time' then __shard_management.refuse_type(key_type, 'a timestamp without time zone', extract(epoch from value)::text)
        when value < '0001-01-01' or value >= '10000-01-01' then __shard_management.refuse_type(key_type, 'not of the years 1 to 9999', extract(epoch from value)::text)
        when value = '0001-01-01' then ''
        else int8send(__shard_management.ticks(value) # (-9223372036854775808)::bigint) end
$$;

-- Only the instant counts, so the offset is written as zero.
create or replace function __shard_management.encode_key(key_type text, value timestamptz) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'date-time-offset' then __shard_management.refuse_type(key_type, 'a timestamp with time zone', extract(epoch from value)::text)
        when value < '0001-01-01 00:00+00' or value >= '10000-01-01 00:00+00'
            then __shard_management.refuse_type(key_type, 'not of the years 1 to 9999', extract(epoch from value)::text)
        when value = '0001-01-01 00:00+00' then ''
        else int8send(__shard_management.ticks(value at time zone 'UTC') # (-9223372036854775808)::bigint)
            || '\x8000000000000000' end
$$;

create or replace function __shard_management.encode_key(key_type text, value interval) returns bytea
language sql immutable parallel safe as $$
    select case
        when key_type <> 'time-span' then __shard_management.refuse_type(key_type, 'an interval', extract(epoch from value)::text)
        when extract(year from value) <> 0 or extract(month from value) <> 0
            then __shard_management.refuse_type(key_type, 'an interval with months', extract(epoch from value)::text)
        else int8send((extract(epoch from value) * 10000000)::bigint # (-9223372036854775808)::bigint) end
$$;
