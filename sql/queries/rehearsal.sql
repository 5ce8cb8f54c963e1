-- name: ladder_of_service
-- The policy of a service as an incident opened on it now would keep it, and how urgent such an incident is.
select case when s.urgency <> 'severity' then s.urgency when :severity in ('critical', 'error') then 'high' else 'low' end
        as urgency,
    v.snapshot as policy
from service s
join policy_snapshot v on v.policy_id = s.policy_id
where s.name = :name;

-- name: methods_by_ids
-- Whose contact methods these are, and what they are called.
select m.id, u.name as who, m.kind, m.name
from contact_method m
join app_user u on u.id = m.user_id
where m.id = any(:ids::bigint[]);

-- name: channels_by_ids
-- What these channels are called, and by what they are reached.
select id, '#' || name as who, kind, name from channel where id = any(:ids::bigint[]);
