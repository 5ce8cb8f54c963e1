-- name: overrides_since
-- Overrides that have not ended by the given time, with the names of their people, in the order they apply.
select o.id, o.schedule_id, s.name as schedule, o.kind, u.name as user, r.name as replaces, o.start_at, o.end_at, o.source,
    o.created_by
from override o
join schedule s on s.id = o.schedule_id
left join app_user u on u.id = o.user_id
left join app_user r on r.id = o.replaces_id
where o.end_at > :after
order by o.schedule_id, o.id;

-- name: override_by_id
-- One override with the names of its people.
select o.id, o.schedule_id, s.name as schedule, o.kind, u.name as user, r.name as replaces, o.start_at, o.end_at, o.source,
    o.created_by
from override o
join schedule s on s.id = o.schedule_id
left join app_user u on u.id = o.user_id
left join app_user r on r.id = o.replaces_id
where o.id = :id;

-- name: newest_overrides
-- The id of the latest override of each schedule; 0 where it has none.
select s.id as schedule_id, coalesce(max(o.id), 0) as id
from schedule s
left join override o on o.schedule_id = s.id
group by s.id;
