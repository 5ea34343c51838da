-- The global map in SQLite. It has the tables of the PostgreSQL store, with a prefix in place of the schema, and
-- triggers in place of the exclusion constraint. Ids are texts, and truth values are 0 and 1.
--
-- It may be installed again: what is there stays. Times are microseconds since 1970 by this database's clock. Keys
-- are bytes in the order-preserving encoding: '' is the least key, and a high end that is NULL means that there is no
-- end. Nothing here is a secret, because places have no user and no password.
create table if not exists __shard_management_global_meta (
    one           integer primary key check (one = 1),
    version_major integer not null,
    version_minor integer not null,
    -- The last number that was given. An operation gets it as its epoch, or a mapping as its fence.
    serial        integer not null
);

create table if not exists __shard_management_global_maps (
    map_id   text primary key,
    name     text not null,
    -- `name` in lower case, because names are compared without regard to case.
    name_key text not null unique,
    kind     text not null check (kind in ('list', 'range')),
    key_type text not null
);

create table if not exists __shard_management_global_shards (
    shard_id     text primary key,
    map_id       text not null references __shard_management_global_maps,
    -- Each change of the shard gives a new version. A handle is valid for one version.
    version      text not null,
    protocol     text not null check (protocol in ('postgres', 'sqlite')),
    server       text not null,
    port         integer not null check (port between 0 and 65535),
    database     text not null,
    online       integer not null,
    -- False until the operation that adds the shard is done.
    readable     integer not null,
    -- The operation that holds the shard. At most one operation holds it.
    operation_id text,
    epoch        integer not null,
    unique (map_id, protocol, server, port, database)
);

create table if not exists __shard_management_global_mappings (
    mapping_id   text primary key,
    map_id       text not null references __shard_management_global_maps,
    shard_id     text not null references __shard_management_global_shards,
    low          blob not null,
    high         blob,
    online       integer not null,
    -- Names the advisory lock of the transactions on these keys. A split and a merge give new fences.
    fence        integer not null,
    -- The lock's token, the name of its owner, and its end. Either all three are NULL or none is.
    lock_token   text,
    lock_owner   text,
    lock_until   integer,
    -- False until the operation that adds the mapping is done.
    readable     integer not null,
    -- The operation that will change or remove it, or that adds it.
    operation_id text,
    epoch        integer not null,
    check (high is null or low < high),
    unique (map_id, low)
);
create index if not exists __shard_management_global_mappings_shard on __shard_management_global_mappings (shard_id);
create index if not exists __shard_management_global_mappings_operation on __shard_management_global_mappings (operation_id)
    where operation_id is not null;

-- The log: an operation is here from its first step to its last.
create table if not exists __shard_management_global_operations (
    operation_id text primary key,
    map_id       text not null,
    -- The last epoch that the operation got. Each owner gets a greater one, so that writes of an earlier owner are
    -- refused.
    epoch        integer not null unique,
    kind         text not null,
    owner        text not null,
    lease_until  integer not null,
    -- 'forward', or 'back' after the decision to undo the operation. Then it is never 'forward' again.
    direction    text not null check (direction in ('forward', 'back')),
    began_at     integer not null,
    -- JSON: rows that are removed and added, shards before and after.
    plan         text not null
);

-- The shards that were given up as lost. If one of them is seen again, it is refused: its keys may be elsewhere.
create table if not exists __shard_management_global_lost_shards (
    shard_id text primary key,
    map_id   text not null,
    place    text not null,
    lost_at  integer not null
);

create table if not exists __shard_management_global_schema_infos (
    name text primary key,
    -- JSON: the tables that are sharded, by which column, and those that every shard has whole.
    info text not null
);

-- Existing rows do not overlap. So only the row below the new one, and rows that begin inside it, can overlap it. A
-- row with the same id does not count, so that an insertion may be done twice.
create trigger if not exists __shard_management_global_mappings_do_not_overlap
before insert on __shard_management_global_mappings
when exists (
    select 1 from __shard_management_global_mappings o
    where o.map_id = new.map_id and o.mapping_id <> new.mapping_id
        and o.low >= new.low and (new.high is null or o.low < new.high)
) or exists (
    select 1 from (
        select o.high from __shard_management_global_mappings o
        where o.map_id = new.map_id and o.low < new.low order by o.low desc limit 1
    ) below where below.high is null or below.high > new.low
)
begin
    select raise(abort, 'global_mappings_do_not_overlap');
end;
create trigger if not exists __shard_management_global_mappings_keep_their_keys
before update of map_id, low, high on __shard_management_global_mappings
begin
    select raise(abort, 'the keys of a mapping do not change: delete it and insert another');
end;
