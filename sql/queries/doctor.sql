-- name: is_read_only$
-- Whether this database takes no writes: a replica, or set so.
select pg_is_in_recovery() or current_setting('transaction_read_only')::bool;

-- name: autovacuum_is_on$
-- Whether dead rows are cleared away.
select current_setting('autovacuum')::bool and current_setting('track_counts')::bool;

-- name: doctor_engines^
-- How many engines have gone round lately, and when the last of all did.
select count(*) filter (where last_tick_at >= :fresh) as living, max(last_tick_at) as latest from engine_instance;

-- name: doctor_contacts
-- Every contact method and channel, as people know it.
select u.email || '/' || m.name as label, m.kind, m.address, m.secret
from contact_method m
join app_user u on u.id = m.user_id
union all
select 'channel ' || name, kind, address, secret from channel
order by label;

-- name: doctor_unreachable
-- People, other than viewers, without a verified contact method; and whether a policy, a rotation as it is now or
-- will be, or an override that has not ended wants them paged.
select u.email,
    exists (select from escalation_target t where t.user_id = u.id)
        or exists (
            select from rotation r
            cross join lateral (
                (select c.participants from roster_change c
                    where c.rotation_id = r.id and c.at <= :now order by c.at desc, c.id desc limit 1)
                union all
                select c.participants from roster_change c where c.rotation_id = r.id and c.at > :now
                union all
                select r.participants
                where not exists (select from roster_change c where c.rotation_id = r.id and c.at <= :now)
            ) as roster
            where u.id = any(roster.participants))
        or exists (
            select from override o where o.user_id = u.id and o.kind <> 'remove' and o.end_at > :now) as wanted
from app_user u
where u.role <> 'viewer' and not exists (select from contact_method m where m.user_id = u.id and m.verified)
order by lower(u.email);

-- name: doctor_policies
-- Every policy as an incident would keep it, and whether a service uses it.
select p.name, exists (select from service s where s.policy_id = p.id) as used, v.snapshot -> 'steps' as steps
from escalation_policy p
join policy_snapshot v on v.policy_id = p.id
order by p.name;

-- name: doctor_services
-- Every service, and whether anything can raise an alert on it.
select s.name,
    exists (select from integration n where n.service_id = s.id)
        or exists (select from heartbeat b where b.service_id = s.id) as heard
from service s
order by s.name;

-- name: doctor_failed^
-- What failed for good, and how much of it belongs to incidents that still need somebody.
select count(*) as total, count(*) filter (where a.kind = 'PAGE' and i.status = 'TRIGGERED'
    and still_there(a.contact_method_id, a.channel_id)) as needed
from notification_attempt a
left join incident i on i.id = a.incident_id
where a.status = 'FAILED';

-- name: doctor_strays$
-- Open incidents that nothing will move any more; those just opened may be under way.
select count(*)
from incident i
where i.status = 'TRIGGERED' and i.exhausted_at is null and i.snoozed_until is null
    and i.opened_at < :now::timestamptz - interval '1 minute'
    and not exists (
        select from notification_attempt a where a.incident_id = i.id and a.kind = 'STEP' and a.status = 'PENDING');

-- name: only_quiet_people
-- People, other than viewers, who can be reached, but only by these kinds.
select u.email
from app_user u
where u.role <> 'viewer'
    and exists (select from contact_method m where m.user_id = u.id and m.verified)
    and not exists (
        select from contact_method m where m.user_id = u.id and m.verified and m.kind <> all(:quiet::text[]))
order by lower(u.email);

-- name: backend_pid$
-- The number of the process that answers this connection.
select pg_backend_pid();

-- name: service_signs
-- Every service with its last alert and the last page of it that arrived, as far as the latest incidents tell: there is
-- no index by service, since nothing else needs one.
with lately as materialized (
    select id, service_id, last_alert_at from incident order by id desc limit 5000
), ranked as (
    select id, service_id, last_alert_at, row_number() over (partition by service_id order by id desc) as place from lately
)
select s.name, max(r.last_alert_at) as last_alert_at, max(greatest(p.at, q.at)) as last_page_at
from service s
left join ranked r on r.service_id = s.id and r.place <= 20
left join lateral (
    select max(a.delivered_at) as at from notification_attempt a where a.incident_id = r.id and a.kind = 'PAGE') p on true
left join lateral (
    select max(a.delivered_at) as at from notification_attempt_archive a
    where a.incident_id = r.id and a.kind = 'PAGE') q on true
group by s.id, s.name
order by s.name;
