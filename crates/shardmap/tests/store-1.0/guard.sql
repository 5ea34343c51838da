-- The guard: a trigger that enters the key of each written row, for clients that do not enter keys by themselves
-- (psql, libraries, other programs). It is installed after keys.sql, and may be installed again.
--
--   select __shard_management.guard('orders', 'tenant_id', 'tenants');    -- and unguard('orders')
--
-- A write of a row whose key is not here, or is offline, fails as `enter` fails. A write that moves a row to such a
-- key fails too. TRUNCATE always fails, because it has no key. Reading is not guarded. If a transaction reads before
-- it writes, and must not read on a shard that has lost the key, it must enter the key by itself.
--
-- A program that writes rows before their key is here (a move, a restore) sets `session_replication_role` to
-- `replica`, which turns off triggers such as this one.
--
-- Each table gets a function of its own, with the name and the type of its column in it. A trigger that finds its
-- column only when it runs costs several times as much. After a column was renamed, call `guard` again.

create or replace function __shard_management.guard_truncate() returns trigger
language plpgsql as $$
begin
    raise exception 'table % is guarded by a shard map and can''t be truncated', tg_relid::regclass
        using errcode = 'RH006', hint = 'Delete the rows of the keys that are here, or call unguard() first.';
end $$;

create or replace function __shard_management.unguard(guarded regclass) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    used regproc;
begin
    select t.tgfoid into used from pg_trigger t where t.tgrelid = guarded and t.tgname = 'rangehold_guard';
    execute format('drop trigger if exists rangehold_guard on %s', guarded);
    execute format('drop trigger if exists rangehold_guard_truncate on %s', guarded);
    if used is not null then
        execute format('drop function if exists %s()', used);
    end if;
end $$;

create or replace function __shard_management.guard(guarded regclass, key_column name, map text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    named record := __shard_management.map_named(map);
    body  text;
    column_type text;
    -- This name does not contain the table's name or number, because tables are renamed, and are restored with other
    -- numbers.
    own   text := 'guard_' || replace(gen_random_uuid()::text, '-', '');
begin
    select format_type(a.atttypid, a.atttypmod) into column_type from pg_attribute a
        where a.attrelid = guarded and a.attname = key_column and a.attnum > 0 and not a.attisdropped;
    if not found then
        raise exception 'table % has no column "%"', guarded, key_column using errcode = 'undefined_column';
    end if;
    perform __shard_management.unguard(guarded);
    -- The type of the key is tried now. Otherwise a wrong type would be found only with the first row.
    execute format('select __shard_management.encode_key(%L, null::%s)', named.key_type, column_type);
    body := format($f$
        create function __shard_management.%1$I() returns trigger
        language plpgsql volatile as $b$
        begin
            if tg_op <> 'INSERT' then
                perform __shard_management.enter_row(%2$L, __shard_management.encode_key(%3$L, old.%4$I));
            end if;
            if tg_op = 'INSERT' or tg_op = 'UPDATE' and new.%4$I is distinct from old.%4$I then
                perform __shard_management.enter_row(%2$L, __shard_management.encode_key(%3$L, new.%4$I));
            end if;
            if tg_op = 'DELETE' then
                return old;
            end if;
            return new;
        end $b$ $f$, own, named.map_id, named.key_type, key_column);
    execute body;
    execute format('create trigger rangehold_guard before insert or update or delete on %s for each row
        execute function __shard_management.%I()', guarded, own);
    execute format('create trigger rangehold_guard_truncate before truncate on %s for each statement
        execute function __shard_management.guard_truncate()', guarded);
end $$;

-- Enters a key for one row. A setting of the transaction says which key the transaction has entered. So a thousand
-- rows of one key cost one entering. The setting is lost together with the lock, when a transaction ends or goes back
-- to a savepoint.
create or replace function __shard_management.enter_row(map uuid, key bytea) returns void
language plpgsql volatile as $$
declare
    entered text := map || ' ' || encode(key, 'hex');
begin
    if key is null then
        raise exception 'a key cannot be NULL' using errcode = 'RH004';
    end if;
    if current_setting('rangehold.entered', true) is distinct from entered then
        perform __shard_management.enter(map, key);
        perform set_config('rangehold.entered', entered, true);
    end if;
end $$;
