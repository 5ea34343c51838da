-- The local map: which keys of which maps this database holds. It decides. The global map and caches only help to
-- find it. It may be installed again: what is there stays. fence.sql is installed after it.
create schema if not exists __shard_management;

create table if not exists __shard_management.local_meta (
    one           bigint primary key check (one = 1),
    version_major bigint not null,
    version_minor bigint not null
);

-- For each map that ever was here, the greatest epoch that wrote here. An operation raises it before it writes, and
-- an operation with an older epoch is refused. It stays when the map and the shard are removed, so that late writes
-- of an earlier owner are refused too.
create table if not exists __shard_management.local_epochs (
    map_id uuid   primary key,
    epoch  bigint not null
);

create table if not exists __shard_management.local_maps (
    map_id   uuid   primary key,
    name     text   not null,
    kind     text   not null check (kind in ('list', 'range')),
    key_type text   not null,
    epoch    bigint not null
);

create table if not exists __shard_management.local_shards (
    map_id   uuid   primary key references __shard_management.local_maps,
    shard_id uuid   not null,
    version  uuid   not null,
    protocol text   not null,
    server   text   not null,
    port     bigint not null,
    database text   not null,
    online   bool   not null,
    epoch    bigint not null
);

-- An interval of keys within one map: both bounds begin with the map's id.
do $$ begin
    create type __shard_management.key_range as range (subtype = bytea);
exception when duplicate_object then null; end $$;

create table if not exists __shard_management.local_mappings (
    mapping_id    uuid     primary key,
    map_id        uuid     not null references __shard_management.local_maps,
    shard_id      uuid     not null,
    low           bytea    not null,
    high          bytea,
    online        bool     not null,
    -- Names the advisory lock that transactions on these keys hold together (a shared lock).
    fence         bigint   not null,
    -- The fences of the mappings from which this one was made, since its transactions were last ended. A transaction
    -- that began before the split or the merge holds one of these instead.
    former_fences bigint[] not null default '{}',
    epoch         bigint   not null,
    check (high is null or low < high),
    constraint local_mappings_do_not_overlap exclude using gist (
        __shard_management.key_range(
            uuid_send(map_id) || low,
            uuid_send(map_id) || coalesce(high, decode(repeat('ff', 130), 'hex'))) with &&)
);
create unique index if not exists local_mappings_low on __shard_management.local_mappings (map_id, low);
