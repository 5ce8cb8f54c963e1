-- name: sees_all_sessions$
-- Whether this role sees what the sessions of others do.
select pg_has_role(current_user, 'pg_read_all_stats', 'usage');

-- name: health_backlog
-- Each lane: how many are due, as far as a look at the first ten thousand says, and since when the first is.
select l.lane,
    (select count(*) from (
        select from notification_attempt a
        where a.status = 'PENDING' and a.kind <> 'STEP' and a.lane = l.lane and a.due_at <= :now limit 10001) d) as due,
    coalesce(extract(epoch from :now - (
        select min(a.due_at) from notification_attempt a
        where a.status = 'PENDING' and a.kind <> 'STEP' and a.lane = l.lane and a.due_at <= :now)), 0)::float8 as oldest
from (values ('high'), ('low')) as l (lane);

-- name: health_leases^
-- Leases that ran out and nobody took back: how many, and since when the first.
select count(*) as overdue, coalesce(extract(epoch from :now - min(lease_until)), 0)::float8 as oldest
from notification_attempt
where status = 'IN_FLIGHT' and lease_until < :now;

-- name: health_table^
-- The queue's table: dead rows, size of rows and of indexes, vacuums past and under way.
select s.n_dead_tup as dead, s.n_live_tup as live, pg_table_size(s.relid) as table_bytes,
    pg_indexes_size(s.relid) as index_bytes, extract(epoch from :now - s.last_autovacuum)::float8 as vacuumed,
    s.autovacuum_count as vacuums,
    (select round(100.0 * p.heap_blks_scanned / greatest(p.heap_blks_total, 1))::int
        from pg_stat_progress_vacuum p where p.relid = s.relid limit 1) as percent
from pg_stat_user_tables s
where s.relid = 'notification_attempt'::regclass;

-- name: health_snapshot^
-- Who holds the oldest snapshot: a session, or a prepared transaction.
select who, age
from (
    select 'process ' || pid || ' of ' || coalesce(nullif(application_name, ''), usename, 'an unknown user')
            || ' (' || coalesce(state, 'working') || ')' as who,
        extract(epoch from :now - xact_start)::float8 as age
    from pg_stat_activity
    where datname = current_database() and (backend_xmin is not null or backend_xid is not null)
        and pid <> pg_backend_pid() and xact_start is not null
    union all
    select 'the prepared transaction ' || gid, extract(epoch from :now - prepared)::float8
    from pg_prepared_xacts
    where database = current_database()
) holders
order by age desc
limit 1;

-- name: health_horizon^
-- What keeps the oldest dead rows from vacuum, by transactions since: a session, a prepared transaction, a replication
-- slot, or a replica that sends feedback. A slot's catalog_xmin keeps rows of the catalogs only.
select who, age
from (
    select 'process ' || pid || ' of ' || coalesce(nullif(application_name, ''), usename, 'an unknown user') as who,
        greatest(age(backend_xmin), age(backend_xid)) as age
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
    union all
    select 'the prepared transaction ' || gid, age(transaction) from pg_prepared_xacts
    where database = current_database()
    union all
    select 'the replication slot ' || slot_name, age(xmin) from pg_replication_slots
    union all
    select 'the replication slot ' || slot_name || ' (catalogs only)', age(catalog_xmin) from pg_replication_slots
    union all
    select 'the replica ' || coalesce(nullif(application_name, ''), 'without a name') || ' (hot_standby_feedback)',
        age(backend_xmin)
    from pg_stat_replication
) holders
where age is not null
order by age desc
limit 1;

-- name: health_slots
-- Replication slots: whether anybody reads them, and how much they hold back.
select slot_name as name, slot_type as kind, active, wal_status, coalesce(database = current_database(), false) as ours,
    (case when pg_is_in_recovery() then null else pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) end)::float8 as held
from pg_replication_slots
order by held desc nulls last, slot_name;

-- name: health_waits^
-- Sessions that wait now, by what for: locks, and the small caches of transaction states.
select count(*) filter (where wait_event_type = 'Lock') as locks,
    coalesce(max(extract(epoch from :now - query_start)) filter (where wait_event_type = 'Lock'), 0)::float8 as longest,
    count(*) filter (where strpos(lower(wait_event), 'slru') > 0 or starts_with(lower(wait_event), 'multixact')) as slru
from pg_stat_activity
where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid();

-- name: health_multixact^
-- How far the multixacts are from their wraparound.
select mxid_age(datminmxid)::float8 as age from pg_database where datname = current_database();

-- name: health_wal^
-- WAL in all, in bytes, since the statistics were reset.
select wal_bytes::float8 as bytes, stats_reset as since from pg_stat_wal;

-- name: health_slru
-- Pages that the small caches of transaction states did not have and read, since the statistics were reset.
select name as cache, blks_read as read, stats_reset as since from pg_stat_slru order by blks_read desc, name;

-- name: health_replicas
-- How far each replica is behind, in seconds and in bytes.
select coalesce(nullif(application_name, ''), 'a replica') as name,
    coalesce(extract(epoch from replay_lag), 0)::float8 as seconds,
    coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::float8 as bytes
from pg_stat_replication
where replay_lsn is not null
order by seconds desc;

-- name: health_notifications$
-- How full the queue of notifications is, from 0 to 1: a full one makes every alert fail.
select pg_notification_queue_usage();

-- name: health_connections^
-- How many connections there are, and may be.
select (select count(*) from pg_stat_activity where backend_type = 'client backend') as used,
    current_setting('max_connections')::int as most;

-- name: health_rate$
-- Messages that ended in the last so many seconds, as far as a look at the first hundred thousand says.
select count(*)
from (
    select from notification_attempt
    where status in ('DELIVERED', 'FAILED', 'CANCELLED') and kind <> 'STEP'
        and finished_at > :now::timestamptz - make_interval(secs => :seconds)
    limit 100001) done;
