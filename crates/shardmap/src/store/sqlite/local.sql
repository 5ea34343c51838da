-- The local map in SQLite: see the one of the PostgreSQL store. A writer has the whole file to itself here,
-- so a fence is a number that nobody takes. Idempotent: what is there stays.
create table if not exists __shard_management_local_meta (
    one           integer primary key check (one = 1),
    version_major integer not null,
    version_minor integer not null
);

-- The greatest epoch that wrote here, of each map that ever was here. An operation raises it before it
-- writes, and one with an older epoch is refused. Kept when map and shard go, so that what a dead owner
-- sends late finds it.
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
    -- Names the advisory lock that a transaction on these keys holds shared.
    fence         integer not null,
    -- Fences of the mappings that this one was cut from or made of: a JSON array.
    former_fences text not null default '[]',
    epoch         integer not null,
    check (high is null or low < high),
    unique (map_id, low)
);

-- Rows do not overlap yet, so only the one below and those that begin inside can. A row that is there already,
-- by its id, is not in its own way: what is done twice does nothing more.
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
