-- The local map in SQLite: see the local map of the PostgreSQL store. Here a writer has the whole file to itself, so
-- a fence is a number that is not used for any lock. It may be installed again: what is there stays.
create table if not exists __shard_management_local_meta (
    one           integer primary key check (one = 1),
    version_major integer not null,
    version_minor integer not null
);

-- For each map that ever was here, the greatest epoch that wrote here. An operation raises it before it writes, and
-- an operation with an older epoch is refused. It stays when the map and the shard are removed, so that late writes
-- of an earlier owner are refused too.
create table if not exists __shard_management_local_epochs (
    map_id text primary key,
    epoch  integer not null
);

create table if not exists __shard_management_local_maps (
    map_id   text primary key,
    name     text not null,
    kind     text not null check (kind in ('list', 'range')),
    key_type text not null,
    epoch    integer not null
);

create table if not exists __shard_management_local_shards (
    map_id   text primary key references __shard_management_local_maps,
    shard_id text not null,
    version  text not null,
    protocol text not null,
    server   text not null,
    port     integer not null,
    database text not null,
    online   integer not null,
    epoch    integer not null
);

create table if not exists __shard_management_local_mappings (
    mapping_id    text primary key,
    map_id        text not null references __shard_management_local_maps,
    shard_id      text not null,
    low           blob not null,
    high          blob,
    online        integer not null,
    -- In PostgreSQL, names the advisory lock that transactions on these keys hold.
    fence         integer not null,
    -- The fences of the mappings from which this one was made, as a JSON array.
    former_fences text not null default '[]',
    epoch         integer not null,
    check (high is null or low < high),
    unique (map_id, low)
);

-- The mappings of a shard that was closed here: it went to another place, or was detached. Nothing serves their keys.
-- They come back if the shard is attached again.
create table if not exists __shard_management_local_closed_mappings (
    mapping_id    text primary key,
    map_id        text not null,
    shard_id      text not null,
    low           blob not null,
    high          blob,
    online        integer not null,
    fence         integer not null,
    former_fences text not null,
    epoch         integer not null
);

-- Existing rows do not overlap. So only the row below the new one, and rows that begin inside it, can overlap it. A
-- row with the same id does not count, so that an insertion may be done twice.
create trigger if not exists __shard_management_local_mappings_do_not_overlap
before insert on __shard_management_local_mappings
when exists (
    select 1 from __shard_management_local_mappings o
    where o.map_id = new.map_id and o.mapping_id <> new.mapping_id
        and o.low >= new.low and (new.high is null or o.low < new.high)
) or exists (
    select 1 from (
        select o.high from __shard_management_local_mappings o
        where o.map_id = new.map_id and o.low < new.low order by o.low desc limit 1
    ) below where below.high is null or below.high > new.low
)
begin
    select raise(abort, 'local_mappings_do_not_overlap');
end;
create trigger if not exists __shard_management_local_mappings_keep_their_keys
before update of map_id, low, high on __shard_management_local_mappings
begin
    select raise(abort, 'the keys of a mapping do not change: delete it and insert another');
end;
