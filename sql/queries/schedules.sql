-- name: schedules_by_id
-- The schedules with the given ids.
select id, name, timezone from schedule where id = any(:ids::bigint[]);

-- name: all_schedules
-- Every schedule, by name.
select id, name, timezone from schedule order by name;

-- name: schedule_by_name
-- One schedule.
select id, name, timezone from schedule where name = :name;

-- name: rotations_of
-- The rotations of the given schedules, in order.
select id, schedule_id, name, participants, unit, length, start_date, handoff_time, restrictions
from rotation
where schedule_id = any(:ids::bigint[])
order by schedule_id, position;

-- name: roster_changes_of
-- The roster changes of the given schedules, in time order.
select c.rotation_id, c.at, c.participants
from roster_change c
join rotation r on r.id = c.rotation_id
where r.schedule_id = any(:ids::bigint[])
order by c.at, c.id;

-- name: overrides_of
-- The overrides of the given schedules, in the order they apply.
select id, schedule_id, kind, user_id, replaces_id, start_at, end_at, source, created_by
from override
where schedule_id = any(:ids::bigint[])
order by id;

-- name: insert_override$
-- One more override; later ones see the result of earlier ones.
insert into override (schedule_id, kind, user_id, replaces_id, start_at, end_at, source, created_by)
values (:schedule_id, :kind, :user_id, :replaces_id, :start_at, :end_at, :source, :created_by)
returning id;

-- name: delete_override!
-- Ends an override.
delete from override where id = :id and schedule_id = :schedule_id;

-- name: append_roster_change!
-- From `at` on the rotation has these participants; whose turn it is follows from the rules.
insert into roster_change (rotation_id, at, participants) values (:rotation_id, :at, :participants::bigint[]);

-- name: trim_later_rosters!
-- Takes a person out of the roster changes that are still to come.
update roster_change
set participants = array_remove(participants, :user_id)
where rotation_id = :rotation_id and at > :at;

-- name: rotations_with_participant
-- Rotations that name a person, now or later.
select r.id, r.schedule_id
from rotation r
where :user_id = any(r.participants)
    or exists (select from roster_change c where c.rotation_id = r.id and :user_id = any(c.participants));
