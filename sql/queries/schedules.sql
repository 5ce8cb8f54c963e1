-- name: whole_schedules
-- The schedules with the given ids, each with all that decides who is on call, and where asked for how everybody who
-- may be can be reached, as people_to_page has it: one look, since pages wait for it. The ids stand in a select so that
-- no plan is made for them alone: planning takes longer than looking.
select s.id, s.timezone,
    (select coalesce(jsonb_agg(jsonb_build_object(
        'name', r.name, 'participants', r.participants, 'unit', r.unit, 'length', r.length,
        'start_date', r.start_date, 'handoff_time', r.handoff_time, 'restrictions', r.restrictions,
        'roster_changes', (
            select coalesce(jsonb_agg(jsonb_build_object('at', c.at, 'participants', c.participants)
                order by c.at, c.id), '[]'::jsonb)
            from roster_change c where c.rotation_id = r.id)) order by r.position), '[]'::jsonb)
        from rotation r where r.schedule_id = s.id) as rotations,
    (select coalesce(jsonb_agg(jsonb_build_object(
        'kind', o.kind, 'user_id', o.user_id, 'replaces_id', o.replaces_id, 'start_at', o.start_at,
        'end_at', o.end_at) order by o.id), '[]'::jsonb)
        from override o where o.schedule_id = s.id and o.user_id is not null) as overrides,
    (select jsonb_agg(jsonb_build_array(u.id, u.email, u.role, m.id, m.kind, m.verified, n.id, n.after_seconds, n.urgency)
            order by u.id, n.position nulls last, m.position)
        from app_user u
        left join contact_method m on m.user_id = u.id
        left join notification_rule n on n.contact_method_id = m.id
        where :people::boolean and u.id in (
            select unnest(r.participants) from rotation r where r.schedule_id = s.id
            union all
            select unnest(c.participants) from roster_change c join rotation r on r.id = c.rotation_id
                where r.schedule_id = s.id
            union all
            select o.user_id from override o where o.schedule_id = s.id)) as people
from schedule s
where s.id = any((select :ids::bigint[])::bigint[]);

-- name: all_schedules
-- Every schedule, by name.
select id, name, timezone from schedule order by name;

-- name: schedule_by_name
-- One schedule.
select id, name, timezone from schedule where name = :name;

-- name: schedule_by_id
-- One schedule.
select id, name, timezone from schedule where id = :id;

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
