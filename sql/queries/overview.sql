-- name: attempt_by_id
-- One attempt, also from the archive.
select * from attempt_overview where id = :id;

-- name: attempts_of_incident
-- All attempts of one incident, also from the archive, in the order they were due.
select *
from attempt_overview
where incident_id = :incident_id
    and (:statuses::text[] is null or status = any(:statuses::text[]))
    and (:transport::text is null or transport = :transport)
    and (:due_at::timestamptz is null or (due_at, id) > (:due_at::timestamptz, :id::bigint))
order by due_at, id
limit :n;

-- name: attempts_by_status
-- Attempts of all incidents in the order they are due, without the archive. An arm per partial index, and per lane of
-- one: a filter on the status alone would read the whole table, and so would a plain join with the view.
with wanted as (
    (select id, due_at from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'high' and 'PENDING' = any(:statuses::text[])
            and (:transport::text is null or transport = :transport)
            and (:due_at::timestamptz is null or (due_at, id) > (:due_at::timestamptz, :id::bigint))
        order by due_at, id limit :n)
    union all
    (select id, due_at from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'low' and 'PENDING' = any(:statuses::text[])
            and (:transport::text is null or transport = :transport)
            and (:due_at::timestamptz is null or (due_at, id) > (:due_at::timestamptz, :id::bigint))
        order by due_at, id limit :n)
    union all
    (select id, due_at from notification_attempt
        where status = 'PENDING' and kind = 'STEP' and 'PENDING' = any(:statuses::text[])
            and (:transport::text is null or transport = :transport)
            and (:due_at::timestamptz is null or (due_at, id) > (:due_at::timestamptz, :id::bigint))
        order by due_at, id limit :n)
    union all
    (select id, due_at from notification_attempt
        where status = 'IN_FLIGHT' and 'IN_FLIGHT' = any(:statuses::text[])
            and (:transport::text is null or transport = :transport)
            and (:due_at::timestamptz is null or (due_at, id) > (:due_at::timestamptz, :id::bigint))
        order by due_at, id limit :n)
    union all
    (select id, due_at from notification_attempt
        where status = 'FAILED' and 'FAILED' = any(:statuses::text[])
            and (:transport::text is null or transport = :transport)
            and (:due_at::timestamptz is null or (due_at, id) > (:due_at::timestamptz, :id::bigint))
        order by due_at, id limit :n)
    union all
    (select id, due_at from notification_attempt
        where status in ('DELIVERED', 'CANCELLED') and status = any(:statuses::text[])
            and array['DELIVERED', 'CANCELLED'] && :statuses::text[]
            and (:transport::text is null or transport = :transport)
            and (:due_at::timestamptz is null or (due_at, id) > (:due_at::timestamptz, :id::bigint))
        order by due_at, id limit :n)
    order by due_at, id
    limit :n
)
select *
from attempt_overview
where id = any(array(select id from wanted)) and not archived
order by due_at, id;

-- name: latest_failed
-- What failed for good, the latest first.
select *
from attempt_overview
where not archived and id = any(array(
    select id from notification_attempt where status = 'FAILED' order by finished_at desc, id desc limit :n))
order by finished_at desc, id desc;

-- name: holds
-- What stands in the way of attempts that wait: their destination, their contact, and what is in the air before them.
select a.id, a.due_at, a.pace_seconds as pace, coalesce(d.failures, 0) as failures, d.not_before, d.reason,
    d.turn_until, c.until as contact_until, coalesce(f.in_flight, 0) as in_flight, f.back_at
from notification_attempt a
left join destination d on d.name = a.destination
left join contact_turn c on c.bundle = a.bundle and c.until > :now
left join (
    select destination, count(*) as in_flight, min(lease_until) as back_at
    from notification_attempt
    where status = 'IN_FLIGHT'
    group by destination
) f on f.destination = a.destination
where a.id = any(:ids::bigint[]);

-- name: tries_of
-- Every try of an attempt that has ended, in order.
select try, started_at, ended_at, outcome, error, request, answer
from attempt_try
where attempt_id = :attempt_id
order by claim_seq;

-- name: incidents_by_id
-- The incidents with the given ids.
select * from incident where id = any(:ids::bigint[]);

-- name: next_steps
-- When the next step of each incident is due.
select incident_id, due_at
from notification_attempt
where kind = 'STEP' and status = 'PENDING' and incident_id = any(:ids::bigint[]);

-- name: who_can_be_paged
-- Of the given people, those a step would reach.
select u.id, u.name
from app_user u
where u.id = any(:ids::bigint[]) and u.role <> 'viewer'
    and exists (select from contact_method m where m.user_id = u.id and m.verified);

-- name: watermark$
-- One text that changes with whatever the dashboard shows. Ids are given out before they are committed, so the sum
-- of the last events' ids is taken: one that comes late lies below the highest. Alerts that repeat write no event
-- but count, a claim writes none but is in flight, and a destination that recovers has no row.
select concat_ws(' ',
    (select sum(id) from (select id from incident_event order by id desc limit 1000) recent),
    (select concat_ws(',', count(*), sum(count), max(last_alert_at)) from incident where status <> 'RESOLVED'),
    (select max(id) from notification_attempt),
    (select concat_ws(',', count(*), sum(id), sum(claim_seq)) from notification_attempt where status = 'IN_FLIGHT'),
    (select concat_ws(',', count(*), max(changed_at)) from destination),
    (select concat_ws(',', count(*), max(id)) from override),
    (select max(id) from outage),
    (select max(last_tick_at) < :stale from engine_instance));
