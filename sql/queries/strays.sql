-- name: lock_strays
-- Open incidents that are not exhausted, not silent, and have no step to come; those just opened may be under way, and
-- those reported in this round are left alone, or a hundred of them would hide the rest.
select i.id
from incident i
where i.status <> 'RESOLVED' and i.status = 'TRIGGERED' and i.exhausted_at is null and i.snoozed_until is null
    and i.opened_at < :now::timestamptz - interval '1 minute'
    and not exists (
        select from notification_attempt a
        where a.incident_id = i.id and a.kind = 'STEP' and a.status = 'PENDING')
    and not exists (
        select from incident_event e
        where e.incident_id = i.id and e.event = 'left_without_end' and (e.data ->> 'round')::int = i.round)
order by i.id
limit 100
for no key update of i skip locked;

-- name: report_strays
-- Once a round; looked at again under the lock, for another engine may have reported it just now.
insert into incident_event (incident_id, at, event, actor, data)
select i.id, :now, 'left_without_end', null, jsonb_build_object('round', i.round)
from incident i
where i.id = any(:ids::bigint[])
    and not exists (
        select from notification_attempt a
        where a.incident_id = i.id and a.kind = 'STEP' and a.status = 'PENDING')
    and not exists (
        select from incident_event e
        where e.incident_id = i.id and e.event = 'left_without_end' and (e.data ->> 'round')::int = i.round)
returning incident_id;
