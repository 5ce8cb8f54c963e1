-- name: lock_due_step
-- The incident whose step has been due longest, if nobody else holds it.
select i.id
from notification_attempt a
join incident i on i.id = a.incident_id
where a.kind = 'STEP' and a.status = 'PENDING' and a.due_at <= :now
    and i.status = 'TRIGGERED' and i.snoozed_until is null
order by a.due_at, a.id
limit 1
for no key update of i skip locked;

-- name: late_steps
-- Incidents whose step is more than a second late: their row is busy, so it is worth waiting for.
select a.incident_id
from notification_attempt a
join incident i on i.id = a.incident_id
where a.kind = 'STEP' and a.status = 'PENDING' and a.due_at < :now::timestamptz - interval '1 second'
    and i.status = 'TRIGGERED' and i.snoozed_until is null
order by a.due_at, a.id
limit :n;

-- name: due_step_of
-- The look after the lock: the row seen before may be cancelled by now.
select a.id, a.round, a.step, a.tries
from notification_attempt a
join incident i on i.id = a.incident_id
where a.incident_id = :incident_id and a.kind = 'STEP' and a.status = 'PENDING' and a.due_at <= :now
    and i.status = 'TRIGGERED' and i.snoozed_until is null;

-- name: finish_step!
-- The step has been fanned out.
update notification_attempt
set status = 'DELIVERED', delivered_at = :now, finished_at = :now
where id = :id and kind = 'STEP' and status = 'PENDING';

-- name: put_off_step!
-- The step raised: it is tried again a little later, and others go first.
update notification_attempt
set tries = tries + 1, due_at = :now::timestamptz + make_interval(secs => :delay), last_error = :error
where id = :id and kind = 'STEP' and status = 'PENDING';

-- name: lock_marked_incidents
-- Incidents with a page that has failed for good since anybody looked.
select id
from incident
where id in (select incident_id from notification_attempt where recheck order by incident_id limit 50)
order by id
for no key update skip locked;

-- name: clear_marks!
-- Cleared before the look, so that a page failing after it marks again.
with locked as materialized (
    select id
    from notification_attempt
    where recheck and incident_id = any(:ids::bigint[])
    order by id
    for no key update
)
update notification_attempt t set recheck = false from locked l where t.id = l.id and t.recheck;

-- name: hurry_failed_steps
-- Where every page of a step has failed for good the next step is due now; never the end of a round that repeats,
-- or a dead channel would burn all rounds in seconds.
update notification_attempt s
set due_at = :now, first_due_at = :now
from incident i
where i.id = any(:ids::bigint[]) and i.status = 'TRIGGERED' and i.snoozed_until is null
    and s.incident_id = i.id and s.kind = 'STEP' and s.status = 'PENDING' and s.due_at > :now
    and (s.step <= jsonb_array_length(i.policy -> 'steps') or i.repeats_left = 0)
    and exists (
        select from notification_attempt p
        where p.incident_id = i.id and p.round = s.round and p.step = s.step - 1 and p.kind = 'PAGE'
            and p.status = 'FAILED')
    and not exists (
        select from notification_attempt p
        where p.incident_id = i.id and p.round = s.round and p.step = s.step - 1 and p.kind = 'PAGE'
            and p.status in ('PENDING', 'IN_FLIGHT', 'DELIVERED'))
returning s.incident_id;

-- name: lock_waking_incident
-- An incident with a deadline that has passed: the end of a snooze, an acknowledgement timeout, an auto-resolve.
select *
from incident
where wake_at is not null and wake_at <= :now
order by wake_at, id
limit 1
for no key update skip locked;

-- name: put_off_deadlines!
-- Waking this incident raised: its deadlines that have passed come again a little later, and others go first.
update incident
set snoozed_until = case when snoozed_until <= :now then :until::timestamptz else snoozed_until end,
    ack_timeout_at = case when ack_timeout_at <= :now then :until::timestamptz else ack_timeout_at end,
    auto_resolve_at = case when auto_resolve_at <= :now then :until::timestamptz else auto_resolve_at end
where id = :id;
