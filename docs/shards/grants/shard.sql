-- In the database of each shard, as a superuser. DATABASE_NAME is its name.
-- The manager makes the tables and owns them, and ends sessions of others when keys go offline or away.
grant create on database "DATABASE_NAME" to map_manager;
grant pg_signal_backend to map_manager;
-- For `adopt`, `exec`, `guard` and `view` the manager has the rights of the role that owns the application's tables.
grant map_owner to map_manager;
-- For a restore or a move by hand, which writes rows before their key is here.
grant set on parameter session_replication_role to map_manager;
-- The application uses its own tables. It may enter keys without any grant.
-- after the tables
-- A role that queries all shards needs to read the tables or views that its queries name, and nothing else of ours.
