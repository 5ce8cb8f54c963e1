-- name: link_recipient^
-- Whom an acknowledge link was sent to, while they are still here.
select email as actor, name, timezone from app_user where id = :user_id
union all
select 'channel:' || name, name, 'UTC' from channel where id = :channel_id;

-- name: incidents_of_link
-- The incidents an acknowledge link lists, those that still need somebody first.
select id, service_name, left(title, 400) as title, severity, status, opened_at, acknowledged_at, acknowledged_by,
    resolved_at, resolved_by
from incident
where id = any(:ids::bigint[])
order by status = 'RESOLVED', status = 'ACKNOWLEDGED', id;

-- name: pageable_targets
-- Whom an incident can be given to, as the configuration writes them.
select 'user' as kind, id, email as name from app_user where role <> 'viewer'
union all
select 'schedule', id, name from schedule
union all
select 'channel', id, name from channel
order by kind desc, name;

-- name: reachable_people
-- Those whom a page would reach.
select u.email
from app_user u
where u.role <> 'viewer' and exists (select from contact_method m where m.user_id = u.id and m.verified);

-- name: resolved_lately
-- What was resolved last, the latest first.
select *
from incident
where resolved_at is not null
order by resolved_at desc, id desc
limit :n;

-- name: service_names
-- The services an incident can be opened on by hand.
select name from service order by name;

-- name: latest_event
-- The last event of one kind in an incident's timeline.
select id, at, event, actor, data
from incident_event
where incident_id = :incident_id and event = :event
order by id desc
limit 1;

-- name: events_since
-- What came of an action: the given kinds of events after its own, in order.
select id, at, event, actor, data
from incident_event
where incident_id = :incident_id and id > :id and event = any(:events::text[])
order by id;

-- name: tries_of_incident
-- Every try of an incident's attempts, in order.
select t.attempt_id, t.try, t.started_at, t.ended_at, t.outcome, t.error
from attempt_try t
where t.attempt_id in (
    select id from notification_attempt where incident_id = :incident_id
    union all
    select id from notification_attempt_archive where incident_id = :incident_id)
order by t.attempt_id, t.claim_seq;

-- name: newest_engine_tick$
-- When any engine last went round, also one that has ended since.
select greatest((select max(last_tick_at) from engine_instance), (select last_tick_at from delivery));

-- name: setup_people
-- People, and by what they can be reached; no addresses.
select u.id, u.email, u.name, u.role, u.timezone, u.password_hash is not null as can_log_in,
    coalesce((select jsonb_agg(jsonb_build_object('name', m.name, 'kind', m.kind, 'verified', m.verified) order by m.position)
        from contact_method m where m.user_id = u.id), '[]'::jsonb) as methods
from app_user u
order by lower(u.email);

-- name: setup_channels
-- Shared destinations; no addresses.
select id, name, kind from channel order by name;

-- name: setup_schedules
-- Schedules with their rotations.
select s.id, s.name, s.timezone,
    coalesce((select jsonb_agg(jsonb_build_object('name', r.name, 'length', r.length, 'unit', r.unit,
            'people', cardinality(r.participants)) order by r.position)
        from rotation r where r.schedule_id = s.id), '[]'::jsonb) as rotations
from schedule s
order by s.name;

-- name: setup_policies
-- Policies with their steps.
select p.id, p.name, p.repeat,
    coalesce((select jsonb_agg(jsonb_build_object('wait', e.wait_seconds, 'targets', coalesce((
            select jsonb_agg(coalesce('user:' || u.email, 'schedule:' || h.name, 'channel:' || c.name) order by t.position)
            from escalation_target t
            left join app_user u on u.id = t.user_id
            left join schedule h on h.id = t.schedule_id
            left join channel c on c.id = t.channel_id
            where t.step_id = e.id), '[]'::jsonb)) order by e.position)
        from escalation_step e where e.policy_id = p.id), '[]'::jsonb) as steps
from escalation_policy p
order by p.name;

-- name: setup_services
-- Services with their integrations and heartbeats; of a key only how it begins.
select s.id, s.name, p.name as policy, s.urgency, s.ack_timeout_seconds, s.auto_resolve_seconds,
    coalesce((select jsonb_agg(jsonb_build_object('name', n.name, 'kind', n.kind, 'key_prefix', n.key_prefix) order by n.name)
        from integration n where n.service_id = s.id), '[]'::jsonb) as integrations,
    coalesce((select jsonb_agg(jsonb_build_object('name', b.name, 'interval', b.interval_seconds,
            'key_prefix', b.key_prefix, 'paused', b.paused) order by b.name)
        from heartbeat b where b.service_id = s.id), '[]'::jsonb) as heartbeats
from service s
join escalation_policy p on p.id = s.policy_id
order by s.name;

-- name: take_start_token$
-- The first-login link is used up: of two people who use it at once, one gets in.
delete from setting where name = 'start_token' and value @> to_jsonb(:token_hash::text) returning 1;
