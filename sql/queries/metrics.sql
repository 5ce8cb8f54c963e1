-- name: gauges^
-- The state of the queue, in one look.
select
    count(*) filter (where status = 'PENDING') as due,
    coalesce(extract(epoch from :now - min(due_at) filter (where status = 'PENDING')), 0)::float8
        as oldest,
    count(*) filter (where status = 'IN_FLIGHT') as in_flight,
    count(*) filter (where status = 'IN_FLIGHT' and lease_until < :now) as overdue,
    (select count(*) from notification_attempt where status = 'FAILED') as failed
from (
    select status, due_at, lease_until from notification_attempt
    where status = 'PENDING' and kind = 'STEP' and due_at <= :now
    union all
    select status, due_at, lease_until from notification_attempt
    where status = 'PENDING' and kind <> 'STEP' and lane = any('{high,low}') and due_at <= :now
    union all
    select status, due_at, lease_until from notification_attempt where status = 'IN_FLIGHT'
) live;

-- name: held_attempts^
-- How many due messages wait although they are due, by what holds them.
select
    count(*) filter (where d.not_before > :now or d.failures >= :trust) as destination,
    count(*) filter (where c.bundle is not null) as pace
from notification_attempt a
left join destination d on d.name = a.destination
left join contact_turn c on c.bundle = a.bundle and c.until > :now
where a.status = 'PENDING' and a.kind <> 'STEP' and a.due_at <= :now;

-- name: table_sizes
-- What autovacuum has to keep up with, and how large it is.
select s.relname as relation, s.n_dead_tup as dead,
    extract(epoch from :now - s.last_autovacuum)::float8 as vacuumed, pg_total_relation_size(s.relid) as bytes
from pg_stat_user_tables s
where s.schemaname = current_schema() and s.relname = any(:relations::text[])
order by s.relname;

-- name: oldest_snapshot$
-- Seconds that the oldest transaction has been open: nothing it may still see can be vacuumed.
select coalesce(extract(epoch from :now - min(xact_start)), 0)::float8
from pg_stat_activity
where datname = current_database() and (backend_xmin is not null or backend_xid is not null)
    and pid <> pg_backend_pid();
