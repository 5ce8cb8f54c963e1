-- name: pulse^
-- The last hour in slots of two minutes, and the next, from the latest results and the nearest due ones: at most n of
-- each, by their indexes. `whole_since`: where there were more results than that, what came before is not counted.
with lately as materialized (
    select status, kind, transport, finished_at
    from notification_attempt
    where status in ('DELIVERED', 'FAILED', 'CANCELLED')
    order by finished_at desc, id desc
    limit :n
), soon as (
    (select due_at from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'high' and due_at < :until order by due_at, id limit :n)
    union all
    (select due_at from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'low' and due_at < :until order by due_at, id limit :n)
    union all
    (select due_at from notification_attempt
        where status = 'PENDING' and kind = 'STEP' and due_at < :until order by due_at, id limit :n)
), slots as (
    select status as what, floor(extract(epoch from :now::timestamptz - finished_at) / :slot)::int as slot, count(*) as n
    from lately
    where status in ('DELIVERED', 'FAILED') and kind <> 'STEP' and finished_at > :since
    group by 1, 2
    union all
    select 'PENDING', floor(greatest(0, extract(epoch from due_at - :now::timestamptz)) / :slot)::int, count(*)
    from soon
    group by 2
), transports as (
    select transport, max(finished_at) filter (where status = 'DELIVERED') as delivered_at,
        max(finished_at) filter (where status = 'FAILED') as failed_at
    from lately
    where kind <> 'STEP'
    group by transport
)
select
    (select coalesce(jsonb_agg(jsonb_build_array(what, slot, n)), '[]'::jsonb) from slots) as slots,
    (select coalesce(jsonb_agg(jsonb_build_array(transport, delivered_at, failed_at) order by transport), '[]'::jsonb)
        from transports where delivered_at is not null or failed_at is not null) as transports,
    (select case when count(*) = :n then min(finished_at) end from lately) as whole_since;

-- name: queue_counts^
-- How many wait, are in the air and have failed, each counted up to n by its index.
select
    (select count(*) from (select from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'high' order by due_at, id limit :n) high)
    + (select count(*) from (select from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'low' order by due_at, id limit :n) low)
    + (select count(*) from (select from notification_attempt
        where status = 'PENDING' and kind = 'STEP' order by due_at, id limit :n) steps) as pending,
    (select count(*) from (select from notification_attempt
        where status = 'IN_FLIGHT' order by lease_until limit :n) air) as in_flight,
    (select count(*) from (select from notification_attempt
        where status = 'FAILED' order by id limit :n) failed) as failed;

-- name: oldest_due$
-- Since when the first of what is due has been due, what its receiver holds back included.
select least(
    (select min(due_at) from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'high' and due_at <= :now),
    (select min(due_at) from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'low' and due_at <= :now),
    (select due_at from notification_attempt
        where status = 'PENDING' and kind = 'STEP' and due_at <= :now order by due_at, id limit 1));

-- name: last_test$
-- When a test message last arrived. Tests and verifications belong to no incident, and are few.
select max(finished_at)
from (
    (select event, status, finished_at from notification_attempt
        where incident_id is null order by incident_id desc, id desc limit 200)
    union all
    (select event, status, finished_at from notification_attempt_archive
        where incident_id is null order by incident_id desc, id desc limit 200)
) loose
where event = 'test' and status = 'DELIVERED';
