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

-- An interval of keys.
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
    check (high is null or low < high)
);
-- The mappings of a shard that was closed here: it went to another place, or was detached. No function reads them, so
-- their keys are not here. They come back if the shard is attached again.
create table if not exists __shard_management.local_closed_mappings (
    mapping_id    uuid     primary key,
    map_id        uuid     not null,
    shard_id      uuid     not null,
    low           bytea    not null,
    high          bytea,
    online        bool     not null,
    fence         bigint   not null,
    former_fences bigint[] not null,
    epoch         bigint   not null
);

create unique index if not exists local_mappings_low on __shard_management.local_mappings (map_id, low);

-- Mappings of one map do not overlap. The steps of operations write here one after the other, under the lock of the map's epoch,
-- so a look at the neighbours is enough. A shard that an earlier version made has an exclusion constraint, too, with which an
-- insert takes 0.4 ms a row. Only an upgrade drops it, since that waits for all transactions of the shard.
create or replace function __shard_management.expect_no_overlap_here() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    wrong bytea;
begin
    select one.low into wrong from added one
        left join lateral (select m.low, m.high from __shard_management.local_mappings m
            where m.map_id = one.map_id and m.low < one.low order by m.low desc limit 1) below on true
        left join lateral (select m.low from __shard_management.local_mappings m
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
    create trigger local_mappings_do_not_overlap after insert on __shard_management.local_mappings
        referencing new table as added for each statement
        execute function __shard_management.expect_no_overlap_here();
exception when duplicate_object then null; end $$;

-- For each map, a count of the statements that changed its mappings here, in two places: in a sequence, which every
-- transaction sees as it is now, and in a row, which a transaction sees as it was in its snapshot. If a transaction sees
-- the same in both, no mapping of the map has changed since its snapshot. If a change is undone, both differ, and transactions
-- take the slower way, until the next change or mend_counts().
--
-- The number is set, and not taken by nextval: the server writes down 32 numbers ahead when one is taken, so after a crash
-- the sequence would have jumped. The row is locked first, so each change sets a greater number than all changes before
-- that were committed, and no transaction takes an old number for the present one.
create table if not exists __shard_management.local_writes (
    map_id   uuid     primary key,
    count    bigint   not null,
    sequence regclass not null
);

create or replace function __shard_management.count_write() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    written uuid;
    counter text;
    present bigint;
begin
    for written in select distinct w.map_id from writes w loop
        counter := '__shard_management.writes_' || replace(written::text, '-', '');
        if to_regclass(counter) is null then
            execute format('create sequence %s', counter);
        end if;
        insert into __shard_management.local_writes (map_id, count, sequence)
            values (written, 0, counter::regclass) on conflict (map_id) do nothing;
        update __shard_management.local_writes w set count = w.count + 1, sequence = counter::regclass
            where w.map_id = written returning w.count into present;
        perform setval(counter, present);
    end loop;
    return null;
end $$;

-- Makes both numbers the same again for each map, and returns for how many they differed: after a change that was undone, or
-- after a crash of a server whose shard had the functions of an earlier version. A map that is being changed is passed
-- over, because its row is locked.
create or replace function __shard_management.mend_counts() returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    found_one record;
    mended    bigint := 0;
begin
    for found_one in select w.count, w.sequence from __shard_management.local_writes w for update skip locked loop
        if pg_sequence_last_value(found_one.sequence) is distinct from found_one.count then
            perform setval(found_one.sequence, found_one.count);
            mended := mended + 1;
        end if;
    end loop;
    return mended;
end $$;
revoke all on function __shard_management.mend_counts() from public;

do $$ begin
    create trigger count_insert after insert on __shard_management.local_mappings
        referencing new table as writes for each statement execute function __shard_management.count_write();
    create trigger count_update after update on __shard_management.local_mappings
        referencing new table as writes for each statement execute function __shard_management.count_write();
    create trigger count_delete after delete on __shard_management.local_mappings
        referencing old table as writes for each statement execute function __shard_management.count_write();
exception when duplicate_object then null; end $$;
