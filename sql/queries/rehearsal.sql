-- name: ladder_of_service
-- The policy of a service as an incident opened on it now would keep it, and how urgent such an incident is.
select case when s.urgency <> 'severity' then s.urgency when :severity in ('critical', 'error') then 'high' else 'low' end
        as urgency,
    jsonb_build_object('name', p.name, 'repeat', p.repeat, 'steps', coalesce((
        select jsonb_agg(jsonb_build_object('wait', e.wait_seconds, 'targets', coalesce((
            select jsonb_agg(jsonb_build_object(
                'kind', case when t.user_id is not null then 'user' when t.schedule_id is not null then 'schedule'
                    else 'channel' end,
                'id', coalesce(t.user_id, t.schedule_id, t.channel_id),
                'name', coalesce(u.email, h.name, c.name)) order by t.position)
            from escalation_target t
            left join app_user u on u.id = t.user_id
            left join schedule h on h.id = t.schedule_id
            left join channel c on c.id = t.channel_id
            where t.step_id = e.id), '[]'::jsonb)) order by e.position)
        from escalation_step e where e.policy_id = p.id), '[]'::jsonb)) as policy
from service s
join escalation_policy p on p.id = s.policy_id
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
