-- The global map: every shard map with its shards and mappings, and the operations under way.
--
-- It may be installed again: what is there stays. Times are microseconds since 1970 by this database's clock. Keys
-- are bytes in the order-preserving encoding: '' is the least key, and a high end that is NULL means that there is no
-- end. Nothing here is a secret, because places have no user and no password.
create schema if not exists __shard_management;

create table if not exists __shard_management.global_meta (
    one           bigint primary key check (one = 1),
    version_major bigint not null,
    version_minor bigint not null,
    -- The last number that was given. An operation gets it as its epoch, or a mapping as its fence.
    serial        bigint not null
);

create table if not exists __shard_management.global_maps (
    map_id   uuid primary key,
    name     text not null,
    -- `name` in lower case, because names are compared without regard to case.
    name_key text not null unique,
    kind     text not null check (kind in ('list', 'range')),
    key_type text not null
);

create table if not exists __shard_management.global_shards (
    shard_id     uuid   primary key,
    map_id       uuid   not null references __shard_management.global_maps,
    -- Each change of the shard gives a new version. A handle is valid for one version.
    version      uuid   not null,
    protocol     text   not null check (protocol in ('postgres', 'sqlite')),
    server       text   not null,
    port         bigint not null check (port between 0 and 65535),
    database     text   not null,
    online       bool   not null,
    -- False until the operation that adds the shard is done.
    readable     bool   not null,
    -- The operation that holds the shard. At most one operation holds it.
    operation_id uuid,
    epoch        bigint not null,
    unique (map_id, protocol, server, port, database)
);

-- An interval of keys within one map: both bounds begin with the map's id, so that intervals of two maps
-- never overlap, and one constraint checks all maps.
do $$ begin
    create type __shard_management.key_range as range (subtype = bytea);
exception when duplicate_object then null; end $$;

create table if not exists __shard_management.global_mappings (
    mapping_id   uuid   primary key,
    map_id       uuid   not null references __shard_management.global_maps,
    shard_id     uuid   not null references __shard_management.global_shards,
    low          bytea  not null,
    high         bytea,
    online       bool   not null,
    -- Names the advisory lock of the transactions on these keys. A split and a merge give new fences.
    fence        bigint not null,
    -- The lock's token, the name of its owner, and its end. Either all three are NULL or none is.
    lock_token   uuid,
    lock_owner   text,
    lock_until   bigint,
    -- False until the operation that adds the mapping is done.
    readable     bool   not null,
    -- The operation that will change or remove it, or that adds it.
    operation_id uuid,
    epoch        bigint not null,
    check (high is null or low < high),
    -- The greatest key has 129 bytes. So a bound with 130 bytes of ff is above all keys of its map.
    constraint global_mappings_do_not_overlap exclude using gist (
        __shard_management.key_range(
            uuid_send(map_id) || low,
            uuid_send(map_id) || coalesce(high, decode(repeat('ff', 130), 'hex'))) with &&)
);
create unique index if not exists global_mappings_low on __shard_management.global_mappings (map_id, low);
create index if not exists global_mappings_shard on __shard_management.global_mappings (shard_id);
create index if not exists global_mappings_operation on __shard_management.global_mappings (operation_id)
    where operation_id is not null;

-- The log: an operation is here from its first step to its last.
create table if not exists __shard_management.global_operations (
    operation_id uuid   primary key,
    map_id       uuid   not null,
    -- The last epoch that the operation got. Each owner gets a greater one, so that writes of an earlier owner are
    -- refused.
    epoch        bigint not null unique,
    kind         text   not null,
    owner        text   not null,
    lease_until  bigint not null,
    -- 'forward', or 'back' after the decision to undo the operation. Then it is never 'forward' again.
    direction    text   not null check (direction in ('forward', 'back')),
    began_at     bigint not null,
    -- JSON: rows that are removed and added, shards before and after.
    plan         text   not null
);

create table if not exists __shard_management.global_schema_infos (
    name text primary key,
    -- JSON: the tables that are sharded, by which column, and those that every shard has whole.
    info text not null
);
