-- name: lock_incident
-- Everybody who changes an incident or adds, cancels, hurries or replays its attempts holds this row first.
select * from incident where id = :id for no key update;

-- name: incident_by_id
-- One incident, without a lock.
select * from incident where id = :id;

-- name: list_incidents
-- Newest first; every filter is optional. `before` is the id to go on from.
select *
from incident
where (:statuses::text[] is null or status = any(:statuses::text[]))
    and (:service::text is null or service_name = :service)
    and (:before::bigint is null or id < :before)
order by id desc
limit :n;

-- name: open_incidents
-- For the dashboard: exhausted first, then not acknowledged, oldest first.
select *
from incident
where status <> 'RESOLVED'
order by exhausted_at is null, status = 'ACKNOWLEDGED', id
limit :n;

-- name: count_open_incidents
-- How many incidents are open, by status.
select status, count(*) as n from incident where status <> 'RESOLVED' group by status;

-- name: acknowledge
-- TRIGGERED -> ACKNOWLEDGED.
update incident
set status = 'ACKNOWLEDGED', acknowledged_at = :now, acknowledged_by = :actor, exhausted_at = null,
    snoozed_until = null, ack_timeout_at = :now::timestamptz + make_interval(secs => ack_timeout_seconds)
where id = :id and status = 'TRIGGERED'
returning *;

-- name: resolve
-- TRIGGERED or ACKNOWLEDGED -> RESOLVED. A silence stays on record: the same key firing again stays silent.
update incident
set status = 'RESOLVED', resolved_at = :now, resolved_by = :actor, ack_timeout_at = null, auto_resolve_at = null
where id = :id and status <> 'RESOLVED'
returning *;

-- name: unacknowledge
-- ACKNOWLEDGED -> TRIGGERED.
update incident
set status = 'TRIGGERED', acknowledged_at = null, acknowledged_by = null, ack_timeout_at = null
where id = :id and status = 'ACKNOWLEDGED'
returning *;

-- name: reopen
-- RESOLVED -> TRIGGERED, unless the key is open elsewhere.
update incident
set status = 'TRIGGERED', resolved_at = null, resolved_by = null, acknowledged_at = null, acknowledged_by = null,
    exhausted_at = null, snoozed_until = null, last_alert_at = :now,
    auto_resolve_at = :now::timestamptz + make_interval(secs => auto_resolve_seconds)
where id = :id and status = 'RESOLVED'
returning *;

-- name: open_with_same_key$
-- The open incident that holds this one's key.
select o.id
from incident o
join incident i on i.service_id = o.service_id and i.dedup_key = o.dedup_key
where i.id = :id and o.id <> i.id and o.status <> 'RESOLVED';

-- name: snooze
-- An open incident is silent until the given time, and TRIGGERED.
update incident
set status = 'TRIGGERED', acknowledged_at = null, acknowledged_by = null, ack_timeout_at = null,
    exhausted_at = null, snoozed_until = :until
where id = :id and status <> 'RESOLVED'
returning *;

-- name: end_silence!
-- What earlier incidents of this key say of its silence counts no more. Their rows are never waited for.
with earlier as materialized (
    select id
    from incident
    where service_id = :service_id and dedup_key = :dedup_key and snoozed_until > :now and id <> :id
        and status = 'RESOLVED'
    order by id
    for no key update skip locked
)
update incident i set snoozed_until = null from earlier e where i.id = e.id;

-- name: reassign
-- An open incident climbs another ladder from here on, and is TRIGGERED.
update incident
set status = 'TRIGGERED', acknowledged_at = null, acknowledged_by = null, ack_timeout_at = null, policy = :policy
where id = :id and status <> 'RESOLVED'
returning *;

-- name: restart
-- A new round of a TRIGGERED incident's ladder: always a new number, whatever ended the last one.
update incident
set round = round + 1, step = 0, repeats_left = (policy ->> 'repeat')::int, exhausted_at = null, snoozed_until = null
where id = :id and status = 'TRIGGERED'
returning *;

-- name: lock_live_attempts
-- The attempts an acknowledgement stops, locked in id order before anything is changed: claims and settles that
-- are under way have committed by the time the next statement looks.
select id
from notification_attempt
where incident_id = :incident_id and kind in ('PAGE', 'STEP') and status in ('PENDING', 'IN_FLIGHT')
order by id
for no key update;

-- name: stop_attempts
-- In one pass: what waits is cancelled, what is in the air is flagged.
update notification_attempt
set status = case status when 'PENDING' then 'CANCELLED' else status end,
    finished_at = case status when 'PENDING' then :now::timestamptz end,
    cancel_requested = status = 'IN_FLIGHT'
where incident_id = :incident_id and kind in ('PAGE', 'STEP') and status in ('PENDING', 'IN_FLIGHT')
returning id, kind, status;

-- name: pages_in_flight
-- What was already on its way, read from state so that a repeated request names it too.
select a.id as attempt_id, u.email as user, c.name as channel
from notification_attempt a
left join app_user u on u.id = a.user_id
left join channel c on c.id = a.channel_id
where a.incident_id = :incident_id and a.kind = 'PAGE' and a.status = 'IN_FLIGHT'
order by a.id;

-- name: insert_notices!
-- Updates for those who were sent the problem and asked for updates. One that follows a page still in the air
-- waits until that page cannot arrive any more.
insert into notification_attempt (
    incident_id, kind, event, status, lane, round, step, recipient, target, user_id, contact_method_id, channel_id,
    transport, destination, bundle, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq,
    cancel_requested, recheck, idempotency_key, summary)
select p.incident_id, 'NOTICE', :event, 'PENDING', 'low', max(p.round), max(p.step), 'notice', null,
    p.user_id, p.contact_method_id, p.channel_id, p.transport,
    coalesce(max(m.destination), max(c.destination)),
    case when coalesce(max(m.pace_seconds), max(c.pace_seconds)) = 0 then null else max(p.bundle) end,
    coalesce(max(m.pace_seconds), max(c.pace_seconds)),
    greatest(:now, max(p.lease_until)), greatest(:now, max(p.lease_until)), 0, :max_tries, 0, 0,
    false, false, gen_random_uuid()::text, :summary
from notification_attempt p
left join contact_method m on m.id = p.contact_method_id and m.updates
left join channel c on c.id = p.channel_id and c.updates
where p.incident_id = :incident_id and p.kind = 'PAGE' and p.tries > 0
    and (p.status in ('IN_FLIGHT', 'DELIVERED') or exists (
        select from attempt_try t where t.attempt_id = p.id and t.outcome = 'unknown'))
    and (m.id is not null or c.id is not null)
group by p.incident_id, p.user_id, p.contact_method_id, p.channel_id, p.transport;

-- name: pending_step
-- The one step that waits on this incident's ladder.
select id, round, step, tries
from notification_attempt
where incident_id = :incident_id and kind = 'STEP' and status = 'PENDING';
