-- name: transfer_insert_schedule$
-- A new schedule.
insert into schedule (name, timezone) values (:name, :timezone) returning id;

-- name: transfer_update_schedule!
-- Makes a schedule what the file says.
update schedule set name = :name, timezone = :timezone where id = :id;

-- name: transfer_delete_schedule!
-- Removes a schedule with its rotations and overrides.
delete from schedule where id = :id;

-- name: transfer_insert_rotation$
-- A new rotation.
insert into rotation (
    schedule_id, name, position, participants, unit, length, start_date, handoff_time, restrictions)
values (:schedule_id, :name, :position, :participants::bigint[], :unit, :length, :start_date, :handoff_time,
    :restrictions)
returning id;

-- name: transfer_update_rotation!
-- Makes a rotation what the file says.
update rotation
set name = :name, position = :position, participants = :participants::bigint[], unit = :unit, length = :length,
    start_date = :start_date, handoff_time = :handoff_time, restrictions = :restrictions
where id = :id and schedule_id = :schedule_id;

-- name: transfer_delete_rotation!
-- Removes a rotation.
delete from rotation where id = :id;

-- name: transfer_delete_roster_changes!
-- Makes room for a rotation's roster changes as the file has them.
delete from roster_change where rotation_id = :rotation_id;

-- name: transfer_delete_overrides!
-- Removes the overrides that came from a file and are not in this one; those of people stay.
delete from override where schedule_id = :schedule_id and source = 'yaml' and id <> all(:kept::bigint[]);

-- name: transfer_insert_policy$
-- A new policy.
insert into escalation_policy (name, repeat) values (:name, :repeat) returning id;

-- name: transfer_update_policy!
-- Makes a policy what the file says.
update escalation_policy set name = :name, repeat = :repeat where id = :id;

-- name: transfer_delete_policy!
-- Removes a policy; refused by the database while a service uses it.
delete from escalation_policy where id = :id;

-- name: transfer_delete_steps!
-- Makes room for a policy's steps as the file has them.
delete from escalation_step where policy_id = :policy_id;

-- name: transfer_insert_step$
-- One step of a policy.
insert into escalation_step (policy_id, position, wait_seconds) values (:policy_id, :position, :wait) returning id;

-- name: transfer_insert_targets!
-- The targets of a step, in order; each has one of the three ids.
insert into escalation_target (step_id, position, user_id, schedule_id, channel_id)
select :step_id, t.position, t.user_id, t.schedule_id, t.channel_id
from unnest(:users::bigint[], :schedules::bigint[], :channels::bigint[]) with ordinality
    as t (user_id, schedule_id, channel_id, position);
