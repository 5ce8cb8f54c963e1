-- name: demo_may_be_loaded$
-- Whether nothing is set up but, at most, one admin: the demo goes nowhere else.
select not exists (select from service) and not exists (select from escalation_policy)
    and not exists (select from schedule) and not exists (select from channel) and not exists (select from incident)
    and (select count(*) <= 1 from app_user)
    and not exists (select from app_user where role <> 'admin' or lower(email) = any(:names::text[]));

-- name: demo_things
-- What bears a name of the demo, or was made by it.
select 'user' as noun, id, email as name
from app_user
where lower(email) = any(:names::text[]) or id = any(:users::bigint[])
union all
select 'channel', id, name from channel where name = any(:names::text[]) or id = any(:channels::bigint[])
union all
select 'schedule', id, name from schedule where name = any(:names::text[]) or id = any(:schedules::bigint[])
union all
select 'policy', id, name from escalation_policy where name = any(:names::text[]) or id = any(:policies::bigint[])
union all
select 'service', id, name from service where name = any(:names::text[]) or id = any(:services::bigint[]);

-- name: demo_uses
-- What uses what, in the whole configuration and in open incidents; of the demo's own services, only what was added
-- to them.
select 'policy' as by_noun, p.id as by_id, p.name as by_name,
    case when t.user_id is not null then 'user' when t.schedule_id is not null then 'schedule' else 'channel' end as noun,
    coalesce(t.user_id, t.schedule_id, t.channel_id) as id
from escalation_target t
join escalation_step e on e.id = t.step_id
join escalation_policy p on p.id = e.policy_id
union all
select 'service', id, name, 'policy', policy_id from service
union all
select 'schedule', s.id, s.name, 'user', person
from schedule s
join rotation r on r.schedule_id = s.id
cross join lateral unnest(r.participants) as person
union all
select 'schedule', s.id, s.name, 'user', person
from schedule s
join rotation r on r.schedule_id = s.id
join roster_change c on c.rotation_id = r.id
cross join lateral unnest(c.participants) as person
union all
select 'schedule', s.id, s.name, 'user', person
from schedule s
join override o on o.schedule_id = s.id and o.end_at > :now
cross join lateral unnest(array[o.user_id, o.replaces_id]) as person
where person is not null
union all
select 'integration', n.id, n.name, 'service', n.service_id from integration n where n.id <> all(:integrations::bigint[])
union all
select 'heartbeat', b.id, b.name, 'service', b.service_id from heartbeat b
union all
select 'open incident', i.id, i.id::text, t.target ->> 'kind', (t.target ->> 'id')::bigint
from incident i
cross join lateral jsonb_array_elements(i.policy -> 'steps') as s (step)
cross join lateral jsonb_array_elements(s.step -> 'targets') as t (target)
where i.status <> 'RESOLVED' and coalesce(i.service_id, 0) <> all(:services::bigint[])
    and i.id <> all(:incidents::bigint[]);

-- name: demo_integrations
-- The integrations of the demo's services as they are made.
select id from integration where service_id = any(:services::bigint[]);

-- name: lock_services
-- Nobody opens an incident on these services any more.
select id from service where id = any(:ids::bigint[]) order by id for update;

-- name: lock_demo_incidents
-- The demo's incidents: those of its services, and those it was loaded with.
select id
from incident
where service_id = any(:services::bigint[]) or id = any(:incidents::bigint[])
order by id
for update;

-- name: lock_attempts_of
-- Every attempt of these incidents, in id order.
select id from notification_attempt where incident_id = any(:ids::bigint[]) order by id for update;

-- name: delete_incidents!
-- Removes incidents with all that was written about them.
with attempts as (
    delete from notification_attempt where incident_id = any(:ids::bigint[]) returning id
), archived as (
    delete from notification_attempt_archive where incident_id = any(:ids::bigint[]) returning id
), tries as (
    delete from attempt_try where attempt_id in (select id from attempts union all select id from archived)
), events as (
    delete from incident_event where incident_id = any(:ids::bigint[])
)
delete from incident where id = any(:ids::bigint[]);

-- name: destinations_of
-- The gates that the contact methods and channels of the demo share.
select destination from contact_method where user_id = any(:users::bigint[])
union
select destination from channel where id = any(:channels::bigint[]);

-- name: forget_destinations!
-- Gates that nobody's contact method or channel leads to any more.
delete from destination
where name = any(:names::text[])
    and not exists (select from contact_method m where m.destination = destination.name)
    and not exists (select from channel c where c.destination = destination.name);

-- name: delete_setting!
-- Forgets a setting.
delete from setting where name = :name;

-- name: people_with_password
-- Who can log in.
select id, role from app_user where password_hash is not null;
