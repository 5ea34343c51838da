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
    check (high is null or low < high)
);
create unique index if not exists global_mappings_low on __shard_management.global_mappings (map_id, low);
create index if not exists global_mappings_shard on __shard_management.global_mappings (shard_id);
create index if not exists global_mappings_operation on __shard_management.global_mappings (operation_id)
    where operation_id is not null;

-- Mappings of one map do not overlap. Changes of a map are decided one after the other, under the lock of the map's row, so
-- a look at the neighbours is enough. Earlier versions had an exclusion constraint, with which the update at the end of a
-- long operation took 0.4 ms a row.
do $$ begin
    if exists (select from pg_constraint where conname = 'global_mappings_do_not_overlap'
            and conrelid = '__shard_management.global_mappings'::regclass) then
        alter table __shard_management.global_mappings drop constraint global_mappings_do_not_overlap;
    end if;
end $$;
create or replace function __shard_management.expect_no_overlap() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    wrong bytea;
begin
    select one.low into wrong from added one
        left join lateral (select m.low, m.high from __shard_management.global_mappings m
            where m.map_id = one.map_id and m.low < one.low order by m.low desc limit 1) below on true
        left join lateral (select m.low from __shard_management.global_mappings m
            where m.map_id = one.map_id and m.low > one.low order by m.low limit 1) above on true
        where below.low is not null and (below.high is null or below.high > one.low)
            or above.low is not null and (one.high is null or one.high > above.low)
        limit 1;
    if wrong is not null then
        raise exception 'the mapping that begins at \x% overlaps another one', encode(wrong, 'hex')
            using errcode = 'exclusion_violation';
    end if;
    return null;
end $$;
do $$ begin
    create trigger global_mappings_do_not_overlap after insert on __shard_management.global_mappings
        referencing new table as added for each statement
        execute function __shard_management.expect_no_overlap();
exception when duplicate_object then null; end $$;

-- How many mappings each shard has: the sum of its rows here. To place one more tenant, nobody has to count the mappings of
-- all. A change takes the rows that no other transaction holds and puts one row in their place, so changes never wait for
-- each other here, and there are hardly more rows than transactions at the same time.
create table if not exists __shard_management.global_shard_sizes (
    shard_id uuid   not null references __shard_management.global_shards on delete cascade,
    mappings bigint not null
);
create index if not exists global_shard_sizes_shard on __shard_management.global_shard_sizes (shard_id);
-- Counted again each time: rows that a person restores by hand may have been counted twice.
lock table __shard_management.global_mappings in share row exclusive mode;
delete from __shard_management.global_shard_sizes;
insert into __shard_management.global_shard_sizes
    select shard_id, count(*) from __shard_management.global_mappings group by shard_id;
create or replace function __shard_management.count_mappings() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    with changes as (
        select shard_id, count(*) * case tg_op when 'DELETE' then -1 else 1 end as mappings
        from changed group by shard_id
    ), taken as (
        delete from __shard_management.global_shard_sizes where ctid in (
            select s.ctid from __shard_management.global_shard_sizes s
            where s.shard_id in (select shard_id from changes) for update skip locked)
        returning shard_id, mappings
    )
    insert into __shard_management.global_shard_sizes
        select shard_id, sum(mappings) from (select * from changes union all select * from taken) parts group by shard_id;
    return null;
end $$;
-- No change of ours gives a mapping to another shard, but a person may do so by hand.
create or replace function __shard_management.count_given_mapping() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into __shard_management.global_shard_sizes values (old.shard_id, -1), (new.shard_id, 1);
    return null;
end $$;
do $$ begin
    create trigger global_mappings_are_counted after insert on __shard_management.global_mappings
        referencing new table as changed for each statement execute function __shard_management.count_mappings();
    create trigger global_mappings_leave_the_count after delete on __shard_management.global_mappings
        referencing old table as changed for each statement execute function __shard_management.count_mappings();
    create trigger global_mappings_given_are_counted after update of shard_id on __shard_management.global_mappings
        for each row execute function __shard_management.count_given_mapping();
exception when duplicate_object then null; end $$;

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

-- The shards that were given up as lost. If one of them is seen again, it is refused: its keys may be elsewhere.
create table if not exists __shard_management.global_lost_shards (
    shard_id uuid   primary key,
    map_id   uuid   not null,
    place    text   not null,
    lost_at  bigint not null
);

create table if not exists __shard_management.global_schema_infos (
    name text primary key,
    -- JSON: the tables that are sharded, by which column, and those that every shard has whole.
    info text not null
);
