-- name: contacts_to_test
-- Every contact method, by person, then every channel.
select m.id, m.kind, m.name, u.email as owner, m.user_id, m.verified
from contact_method m
join app_user u on u.id = m.user_id
union all
select id, kind, name, '#' || name, null, true from channel
order by user_id nulls last, owner, name;

-- name: hold_contact$
-- Holds the contact's row until the transaction ends: two tests at once wait for each other.
with method as materialized (
    select id from contact_method where id = :method_id::bigint for no key update
), shared as materialized (
    select id from channel where id = :channel_id::bigint for no key update
)
select id from method
union all
select id from shared;

-- name: test_under_way$
-- The test that is on its way to this contact.
select max(id)
from notification_attempt
where status in ('PENDING', 'IN_FLIGHT') and kind = 'NOTICE' and event = 'test' and incident_id is null
    and contact_method_id is not distinct from :method_id::bigint and channel_id is not distinct from :channel_id::bigint;

-- name: insert_test$
-- A message about no incident. It waits for no pace: whoever presses the button looks at the phone.
insert into notification_attempt (
    kind, event, status, lane, round, step, recipient, user_id, contact_method_id, channel_id, transport, destination,
    bundle, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck,
    idempotency_key, summary)
select 'NOTICE', 'test', 'PENDING', 'low', 0, 0,
    case when m.id is not null then 'method:' || m.id else 'channel:' || c.id end, m.user_id, m.id, c.id,
    coalesce(m.kind, c.kind), coalesce(m.destination, c.destination), null, 0, :now, :now, 0, :max_tries, 0, 0, false,
    false, gen_random_uuid()::text, ''
from (select :method_id::bigint as method_id, :channel_id::bigint as channel_id) wanted
left join contact_method m on m.id = wanted.method_id
left join channel c on c.id = wanted.channel_id
where m.id is not null or c.id is not null
returning id;

-- name: contact_of_attempt
-- Whom an attempt tells, also from the archive.
select contact_method_id, channel_id from notification_attempt where id = :id
union all
select contact_method_id, channel_id from notification_attempt_archive where id = :id;
