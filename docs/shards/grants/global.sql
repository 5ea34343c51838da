-- The roles are made once in each server: the first part of shard.sql.
-- in each database
-- In the database of the global map, as a superuser. DATABASE_NAME is its name.
-- The manager makes the tables and owns them.
grant create on database "DATABASE_NAME" to map_manager;
-- after the tables
-- A program that finds shards through the library only reads. A program that calls `locate` needs nothing.
grant usage on schema __shard_management to map_reader, map_app;
grant select on all tables in schema __shard_management to map_reader, map_app;
