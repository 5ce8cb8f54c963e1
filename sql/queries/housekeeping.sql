-- name: incidents_to_prune
-- Incidents resolved long ago, oldest first, that nobody holds.
select id
from incident
where resolved_at < :before
order by resolved_at
limit :n
for update skip locked;

-- name: prune_tries!
-- The tries of their attempts, hot and archived.
delete from attempt_try
where attempt_id in (
    select id from notification_attempt where incident_id = any(:ids::bigint[])
    union all
    select id from notification_attempt_archive where incident_id = any(:ids::bigint[]));

-- name: prune_attempts!
-- Their attempts that are still in the hot table: failed ones stay there until they are this old.
delete from notification_attempt where incident_id = any(:ids::bigint[]);

-- name: prune_archive!
-- Their archived attempts.
delete from notification_attempt_archive where incident_id = any(:ids::bigint[]);

-- name: prune_events!
-- Their timeline.
delete from incident_event where incident_id = any(:ids::bigint[]);

-- name: prune_incidents!
-- And the incidents themselves.
delete from incident where id = any(:ids::bigint[]);

-- name: prune_loose!
-- Archived messages that belong to no incident (tests, verifications), with their tries, a batch at a time.
with old as materialized (
    select id
    from notification_attempt_archive
    where incident_id is null and finished_at < :before
    order by finished_at
    limit :n
    for update skip locked
), tries as (
    delete from attempt_try where attempt_id in (select id from old)
)
delete from notification_attempt_archive where id in (select id from old);

-- name: prune_outages!
-- What was written down of outages long over.
delete from outage where ended_at < :before;
