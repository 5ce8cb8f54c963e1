-- A policy as an incident keeps it. Opening an incident, the rehearsal and the doctor read it from here, so that all
-- three climb the same ladder.
create view policy_snapshot as
select p.id as policy_id,
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
        from escalation_step e where e.policy_id = p.id), '[]'::jsonb)) as snapshot
from escalation_policy p;

-- Whether what an attempt was sent to is still there.
create function still_there(contact_method_id bigint, channel_id bigint) returns boolean
language sql stable
return ($1 is null or exists (select from contact_method m where m.id = $1))
    and ($2 is null or exists (select from channel c where c.id = $2));
