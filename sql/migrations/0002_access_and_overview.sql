-- Wrong guesses of passwords, counted per account and per address; a row is forgotten once `until` has passed.
create table login_guess (
    subject text primary key,
    guesses integer not null,
    until timestamptz not null
);

-- The dashboard and a replay of many look for what failed; a row is in here only while it is FAILED.
create index attempt_failed on notification_attempt (id) where status = 'FAILED';

-- An attempt as people see it: with the names of whom it tells and of what, and with what its destination says. The
-- archive is part of it; ask for `not archived` where the hot table alone is meant, and the planner leaves it out.
create view attempt_overview as
select a.archived, a.id, a.incident_id, i.title as incident_title, i.status as incident_status, a.kind, a.event,
    a.status, a.lane, a.step, a.round, a.target, a.user_id, u.email as "user", u.name as user_name, c.name as channel,
    nullif(a.transport, '') as transport, coalesce(m.address, c.address) as address, m.name as contact_method,
    a.bundle, a.pace_seconds, d.not_before as gate_until, d.reason as gate_reason, a.due_at, a.first_due_at, a.tries,
    a.max_tries, a.replays, a.claimed_at, a.lease_owner, a.lease_until, a.cancel_requested, a.idempotency_key,
    a.summary, a.last_error, a.delivered_at, a.finished_at
from (
    select false as archived, id, incident_id, kind, event, status, lane, step, round, target, user_id,
        contact_method_id, channel_id, transport, destination, bundle, pace_seconds, due_at, first_due_at, tries,
        max_tries, replays, claimed_at, lease_owner, lease_until, cancel_requested, idempotency_key, summary,
        last_error, delivered_at, finished_at
    from notification_attempt
    union all
    select true as archived, id, incident_id, kind, event, status, lane, step, round, target, user_id,
        contact_method_id, channel_id, transport, destination, bundle, pace_seconds, due_at, first_due_at, tries,
        max_tries, replays, claimed_at, lease_owner, lease_until, cancel_requested, idempotency_key, summary,
        last_error, delivered_at, finished_at
    from notification_attempt_archive
) a
left join incident i on i.id = a.incident_id
left join app_user u on u.id = a.user_id
left join contact_method m on m.id = a.contact_method_id
left join channel c on c.id = a.channel_id
left join destination d on d.name = a.destination and a.status = 'PENDING';
