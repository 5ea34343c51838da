-- Once in each server that has a shard or the global map, as a superuser. `map_owner` need not log in. Give each of the
-- others a way to log in, for instance a password.
create role map_owner login;
create role map_manager login;
create role map_app login;
create role map_reader login;
-- The manager ends sessions of others when keys go offline or away.
grant pg_signal_backend to map_manager;
-- For `adopt`, `exec`, `guard` and `view` the manager has the rights of the role that owns the application's tables.
grant map_owner to map_manager;
-- For a restore or a move by hand, which writes rows before their key is here.
grant set on parameter session_replication_role to map_manager;
-- in each database
-- In the database of each shard, as a superuser. DATABASE_NAME is its name.
-- The manager makes the tables of the local map and owns them.
grant create on database "DATABASE_NAME" to map_manager;
-- The owner makes the application's tables. The application writes them, and readers read them.
grant create on schema public to map_owner;
alter default privileges for role map_owner in schema public
    grant select, insert, update, delete on tables to map_app;
alter default privileges for role map_owner in schema public grant usage on sequences to map_app;
alter default privileges for role map_owner in schema public grant select on tables to map_reader;
-- A script that `exec` runs in all shards makes tables as the manager.
alter default privileges for role map_manager in schema public grant all on tables to map_owner;
alter default privileges for role map_manager in schema public
    grant select, insert, update, delete on tables to map_app;
alter default privileges for role map_manager in schema public grant select on tables to map_reader;
-- after the tables
-- The application uses its own tables. It may enter keys without any grant.
-- A role that queries all shards needs to read the tables or views that its queries name, and nothing else of ours.
-- Tables that were there before are not concerned by the default privileges: grant the same on them.
