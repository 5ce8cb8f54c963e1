-- name: incidents_to_prune
-- Incidents resolved long ago, oldest first, that nobody holds.
select id
from incident
where resolved_at < :before
order by resolved_at
limit :n
for update skip locked;

-- name: attempts_to_prune
-- Some of their attempts that are still in the hot table: failed ones stay there until they are this old.
select id from notification_attempt where incident_id = any(:ids::bigint[]) limit :n for update skip locked;

-- name: archived_to_prune
-- Some of their archived attempts.
select id from notification_attempt_archive where incident_id = any(:ids::bigint[]) limit :n for update skip locked;

-- name: loose_to_prune
-- Some of the archived messages that belong to no incident (tests, verifications).
select id
from notification_attempt_archive
where incident_id is null and finished_at < :before
order by finished_at
limit :n
for update skip locked;

-- name: prune_tries!
-- Some of the tries of these attempts.
delete from attempt_try
where (attempt_id, claim_seq) in (
    select attempt_id, claim_seq from attempt_try where attempt_id = any(:ids::bigint[]) limit :n for update skip locked);

-- name: prune_attempts!
-- Those of these attempts whose tries are gone.
delete from notification_attempt a
where id = any(:ids::bigint[]) and not exists (select from attempt_try t where t.attempt_id = a.id);

-- name: prune_archived!
-- Those of these archived attempts whose tries are gone.
delete from notification_attempt_archive a
where id = any(:ids::bigint[]) and not exists (select from attempt_try t where t.attempt_id = a.id);

-- name: prune_events!
-- Some of the timeline of these incidents.
delete from incident_event
where id = any(array(
    select id from incident_event where incident_id = any(:ids::bigint[]) limit :n for update skip locked));

-- name: prune_incidents!
-- Those of these incidents that nothing belongs to any more.
delete from incident i
where id = any(:ids::bigint[])
    and not exists (select from notification_attempt a where a.incident_id = i.id)
    and not exists (select from notification_attempt_archive a where a.incident_id = i.id)
    and not exists (select from incident_event e where e.incident_id = i.id);

-- name: prune_outages!
-- Some of what was written down of outages long over.
delete from outage
where id = any(array(select id from outage where ended_at < :before limit :n for update skip locked));
