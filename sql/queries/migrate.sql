-- name: lock_migrations!
-- One instance migrates at a time; the lock ends with the transaction.
select pg_advisory_xact_lock(hashtext('escalade migrate'));

-- name: create_migration_table!
-- The list of what has been applied.
create table if not exists schema_migration (name text primary key, applied_at timestamptz not null);

-- name: migration_table_exists$
-- Whether this database was ever migrated.
select to_regclass('schema_migration') is not null;

-- name: applied_migrations
-- The names of the files applied.
select name from schema_migration;

-- name: record_migration!
-- Written in the transaction that applies the file.
insert into schema_migration (name, applied_at) values (:name, :now);
