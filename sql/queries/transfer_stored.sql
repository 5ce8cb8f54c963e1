-- name: transfer_users
-- Everybody, and whether they can log in.
select id, email, name, role, timezone, password_hash is not null as can_log_in
from app_user
order by lower(email) collate "C";

-- name: transfer_contact_methods
-- Every contact method, in its user's order.
select id, user_id, name, kind, address, secret, updates, pace_seconds as pace, verified
from contact_method
order by user_id, position, id;

-- name: transfer_rules
-- Every notification rule, in its user's order.
select r.user_id, m.name as contact_method, r.after_seconds as after, r.urgency
from notification_rule r
join contact_method m on m.id = r.contact_method_id
order by r.user_id, r.position, r.id;

-- name: transfer_channels
-- Every channel.
select id, name, kind, address, secret, updates, pace_seconds as pace from channel order by name collate "C";

-- name: transfer_schedules
-- Every schedule, in an order that is the same on every machine.
select id, name, timezone from schedule order by name collate "C";

-- name: transfer_policies
-- Every policy.
select id, name, repeat from escalation_policy order by name collate "C";

-- name: transfer_steps
-- Every step with its targets, as the configuration writes them.
select s.policy_id, s.wait_seconds as wait, coalesce(array_agg(
    case when t.user_id is not null then 'user:' || lower(u.email)
        when t.schedule_id is not null then 'schedule:' || h.name
        else 'channel:' || c.name end order by t.position) filter (where t.id is not null), '{}') as targets
from escalation_step s
left join escalation_target t on t.step_id = s.id
left join app_user u on u.id = t.user_id
left join schedule h on h.id = t.schedule_id
left join channel c on c.id = t.channel_id
group by s.id
order by s.policy_id, s.position;

-- name: transfer_services
-- Every service with its policy's name.
select s.id, s.name, p.name as policy, s.urgency, s.ack_timeout_seconds as ack_timeout,
    s.auto_resolve_seconds as auto_resolve
from service s
join escalation_policy p on p.id = s.policy_id
order by s.name collate "C";

-- name: transfer_integrations
-- Every integration.
select id, service_id, name, kind, key_hash, key_prefix, secret, verify
from integration
order by service_id, name collate "C";

-- name: transfer_heartbeats
-- Every heartbeat.
select id, service_id, name, interval_seconds as interval, grace_seconds as grace, key_hash, key_prefix, paused
from heartbeat
order by service_id, name collate "C";
