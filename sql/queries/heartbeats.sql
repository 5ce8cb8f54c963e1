-- name: beat
-- A sign of life. The first must be one that arms; a paused heartbeat is never late.
update heartbeat h
set last_beat_at = :now,
    late_at = case when h.paused is null
        then :now::timestamptz + make_interval(secs => h.interval_seconds + h.grace_seconds) end
from service s
where h.key_hash = :key_hash and s.id = h.service_id and (:arms or h.last_beat_at is not null)
returning h.id, h.name, h.interval_seconds, h.grace_seconds, h.last_beat_at, s.id as service_id, s.name as service_name;

-- name: heartbeat_exists$
-- Whether there is a heartbeat with this key, armed or not.
select exists (select from heartbeat where key_hash = :key_hash);

-- name: lock_late_heartbeat
-- The heartbeat that has been late longest, if nobody else has it.
select h.id, h.name, h.interval_seconds, h.grace_seconds, h.last_beat_at, s.id as service_id, s.name as service_name
from heartbeat h
join service s on s.id = h.service_id
where h.late_at <= :now
order by h.late_at, h.id
limit 1
for no key update of h skip locked;

-- name: rest_heartbeat!
-- It has been told: it is late once, until it beats again.
update heartbeat set late_at = null where id = :id;

-- name: put_off_heartbeat!
-- Telling of it raised: it comes again a little later, and others go first.
update heartbeat
set late_at = :now::timestamptz + make_interval(secs => :delay)
where id = :id and late_at <= :now;
