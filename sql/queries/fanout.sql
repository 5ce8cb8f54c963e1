-- name: people_to_page
-- How the given people can be reached: each contact method with the rules that use it.
select u.id as user_id, u.email, u.role, m.id as method_id, m.kind, m.verified, r.id as rule_id,
    r.after_seconds, r.urgency
from app_user u
left join contact_method m on m.user_id = u.id
left join notification_rule r on r.contact_method_id = m.id
where u.id = any(:ids::bigint[])
order by u.id, r.position nulls last, m.position;

-- name: channels_to_page
-- The given channels that still exist.
select id, name from channel where id = any(:ids::bigint[]);

-- name: insert_pages
-- All pages of one step in one statement, in the order of its targets; a contact that two of them lead to is paged once.
-- With them the next step, due after `wait` or, where nobody is paged, after `wait_untold`, and what the timeline says;
-- the end of a ladder has no next step.
with paged as (
    insert into notification_attempt (
        incident_id, kind, event, status, lane, round, step, recipient, target, user_id, contact_method_id, channel_id,
        transport, destination, bundle, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq,
        cancel_requested, recheck, idempotency_key, summary)
    select :incident_id, 'PAGE', :event, 'PENDING', :lane, :round, :step, r.recipient, r.target, m.user_id, m.id, c.id,
        coalesce(m.kind, c.kind), coalesce(m.destination, c.destination),
        case when coalesce(m.pace_seconds, c.pace_seconds) = 0 then null
            when m.id is not null then 'method:' || m.id else 'channel:' || c.id end,
        coalesce(m.pace_seconds, c.pace_seconds),
        :now::timestamptz + make_interval(secs => r.after), :now::timestamptz + make_interval(secs => r.after), 0, :max_tries, 0, 0,
        false, false, gen_random_uuid()::text, ''
    from unnest(:recipients::text[], :targets::text[], :methods::bigint[], :channels::bigint[], :afters::float8[])
        with ordinality as r (recipient, target, method_id, channel_id, after, place)
    left join contact_method m on m.id = r.method_id
    left join channel c on c.id = r.channel_id
    where m.id is not null or c.id is not null
    order by r.place
    on conflict (incident_id, round, step, kind, recipient) where kind <> 'NOTICE' do nothing
    returning id
), told as (
    select exists (select from paged) as anybody
), stepped as (
    insert into notification_attempt (
        incident_id, kind, event, status, lane, round, step, recipient, transport, destination, pace_seconds, due_at,
        first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck, idempotency_key, summary)
    select :incident_id, 'STEP', 'step', 'PENDING', 'high', :round, :next::int, 'step', '', '', 0, t.due_at, t.due_at, 0, 0, 0,
        0, false, false, gen_random_uuid()::text, ''
    from (select :now::timestamptz + make_interval(secs => case when anybody then :wait::float8 else :wait_untold::float8 end) as due_at
        from told) t
    where :next::int is not null
), reached as (
    update incident set step = :step where id = :incident_id and status = 'TRIGGERED' and :next::int is not null
), noted as (
    insert into incident_event (incident_id, at, event, actor, data)
    select :incident_id, :now, case when anybody then 'step_reached' else 'step_skipped' end, null,
        jsonb_build_object('round', :round::int, 'step', :step::int) || case when anybody
            then jsonb_build_object('people', :people::text) else '{"why": "nobody can be reached"}' end
    from told
    where :next::int is not null
)
select id from paged;

-- name: insert_step!
-- The next rung: at due_at the step is fanned out. It is a row of the queue that sends nothing itself.
insert into notification_attempt (
    incident_id, kind, event, status, lane, round, step, recipient, transport, destination, pace_seconds, due_at,
    first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck, idempotency_key, summary)
values (:incident_id, 'STEP', 'step', 'PENDING', 'high', :round, :step, 'step', '', '', 0, :due_at, :due_at, 0, 0, 0, 0,
    false, false, gen_random_uuid()::text, '');

-- name: next_round
-- The ladder begins again because nobody answered, and repeats are left.
update incident
set round = round + 1, step = 0, repeats_left = repeats_left - 1
where id = :id and status = 'TRIGGERED' and repeats_left > 0
returning *;

-- name: exhaust
-- The last round has ended and nobody answered.
update incident
set exhausted_at = :now
where id = :id and status = 'TRIGGERED' and exhausted_at is null
returning *;
