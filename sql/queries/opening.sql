-- name: integration_by_key
-- The integration a key belongs to, with its service, and the time: an alert that opens an incident waits for both.
select n.id, n.name, n.kind, n.secret, n.verify, s.id as service_id, s.name as service_name, clock_timestamp() as now
from integration n
join service s on s.id = n.service_id
where n.key_hash = :key_hash;

-- name: service_by_name
-- The service alerts are opened on by hand.
select id, name, policy_id from service where name = :name;

-- name: open_incident^
-- Opens an incident with its policy as it is now, or counts the alert on the one that is open under its key: one
-- statement, so that no alert falls between the look and the write. count = 1 says it is new. No row: the service is
-- gone, or has as many open incidents as it may have. silent_until: a snooze outlives the incident it was set on.
with opened as (
    insert into incident (
        service_id, integration_id, service_name, title, details, severity, urgency, status, dedup_key, link, alert_group,
        sanitized, policy, round, step, repeats_left, opened_at, opened_by, last_alert_at, count, ack_timeout_seconds,
        auto_resolve_seconds, auto_resolve_at)
    select s.id, :integration_id, s.name, :title, :details, :severity,
        case when s.urgency <> 'severity' then s.urgency when :severity in ('critical', 'error') then 'high' else 'low' end,
        'TRIGGERED', :dedup_key, :link, :alert_group, :sanitized,
        v.snapshot,
        1, 0, p.repeat, :now, :actor, :now, 1, s.ack_timeout_seconds, s.auto_resolve_seconds,
        :now::timestamptz + make_interval(secs => s.auto_resolve_seconds)
    from service s
    join escalation_policy p on p.id = s.policy_id
    join policy_snapshot v on v.policy_id = p.id
    where s.id = :service_id and (
        (select count(*) from (select from incident where service_id = :service_id and status <> 'RESOLVED' limit :most) o)
            < :most
        or exists (select from incident
            where service_id = :service_id and dedup_key = :dedup_key and status <> 'RESOLVED'))
    on conflict (service_id, dedup_key) where status <> 'RESOLVED' do update
    set count = incident.count + 1, last_alert_at = greatest(incident.last_alert_at, excluded.last_alert_at),
        auto_resolve_at = greatest(incident.last_alert_at, excluded.last_alert_at)
            + make_interval(secs => incident.auto_resolve_seconds)
    returning *
), noted as (
    insert into incident_event (incident_id, at, event, actor, data)
    select id, :now, 'triggered', :actor, '{}' from opened where count = 1
)
select o.*, (
    select max(i.snoozed_until)
    from incident i
    where i.service_id = o.service_id and i.dedup_key = o.dedup_key and i.snoozed_until > :now and i.id <> o.id
) as silent_until
from opened o;

-- name: open_incident_for_target^
-- Opens an incident that pages one target, with no service and a ladder of one step.
insert into incident (
    title, details, severity, urgency, status, link, sanitized, policy, round, step, repeats_left, opened_at, opened_by,
    last_alert_at, count)
values (:title, :details, :severity, 'high', 'TRIGGERED', :link, :sanitized, :policy, 1, 0, 0, :now, :actor, :now, 1)
returning *;

-- name: open_by_key$
-- The open incident of a key.
select id from incident where service_id = :service_id and dedup_key = :dedup_key and status <> 'RESOLVED';

-- name: silence_of_key$
-- Until when a key is silent now, but for the incident that asks.
select max(snoozed_until)
from incident
where service_id = :service_id and dedup_key = :dedup_key and snoozed_until > :now and id <> :id;

-- name: service_exists$
-- Whether a service that took no alert is there: then it has too many open incidents.
select exists (select from service where id = :id);
