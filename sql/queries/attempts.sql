-- name: claim
-- Hands each due row to one worker: heads in due order, capped per destination, each with the due rows of its bundle.
-- The CTEs that lock are materialized, so that no plan runs them twice and claims more than asked for. A contact and a
-- failing destination have one turn, which a claim takes by a row's newest version: what it read may be older.
with heads as materialized (
    select id, bundle, kind, event, destination, due_at
    from notification_attempt
    where status = 'PENDING' and kind <> 'STEP' and lane = :lane and due_at <= :now
        and destination <> all(:closed::text[]) and (bundle is null or bundle <> all(:held::text[]))
    order by due_at, id
    limit :n
    for no key update skip locked
), messages as (
    -- A contact gets one message per claim: of its heads, the group of the earliest.
    select distinct on (coalesce(bundle, id::text)) id, bundle, kind, event, destination, due_at
    from heads
    order by coalesce(bundle, id::text), due_at, id
), placed as (
    select m.*, row_number() over (partition by destination order by due_at, id) as place
    from messages m
), chosen as (
    select p.id, p.bundle, p.kind, p.event, p.destination
    from placed p
    left join unnest(:destinations::text[], :free::int[]) as f (destination, free) using (destination)
    where p.place <= coalesce(f.free, :each::int)
), tried as materialized (
    select name
    from destination
    where name = any(:failing::text[]) and name in (select destination from chosen)
        and (turn_until is null or turn_until <= :now)
    for no key update skip locked
), allowed as (
    select id, bundle, kind, event, destination
    from chosen
    where destination <> all(:failing::text[]) or destination in (select name from tried)
), over as materialized (
    -- Turns that are over. One that somebody holds a lock on is left for later: no claim waits for a row.
    select bundle
    from contact_turn
    where bundle in (select bundle from allowed) and until <= :now
    order by bundle
    for no key update skip locked
), taken as (
    update contact_turn t
    set owner = :owner, until = :now::timestamptz + make_interval(secs => :lease)
    from over
    where t.bundle = over.bundle
    returning t.bundle
), first as (
    insert into contact_turn (bundle, owner, until)
    select bundle, :owner, :now::timestamptz + make_interval(secs => :lease)
    from allowed a
    where bundle is not null and not exists (select from contact_turn t where t.bundle = a.bundle)
    order by bundle
    on conflict (bundle) do nothing
    returning bundle
), heard as (
    select bundle from taken
    union all
    select bundle from first
), leaving as (
    select id, bundle, kind, event, destination
    from allowed
    where bundle is null or bundle in (select bundle from heard)
), trying as (
    -- Only now: of a destination whose one page may not leave yet, the turn is not taken.
    update destination d
    set turn_owner = :owner, turn_until = :now::timestamptz + make_interval(secs => :lease)
    from tried
    where d.name = tried.name and d.name in (select destination from leaving)
), members as materialized (
    select id, id as head from leaving where bundle is null
    union all
    select x.id, c.id as head
    from leaving c
    cross join lateral (
        select a.id
        from notification_attempt a
        where a.status = 'PENDING' and a.bundle = c.bundle and a.lane = :lane and a.due_at <= :now
            and a.kind = c.kind and a.event = c.event and a.kind <> 'STEP'
        order by a.due_at, a.id
        limit :more
        for no key update skip locked
    ) x
    where c.bundle is not null
)
update notification_attempt t
set status = 'IN_FLIGHT', claimed_at = :now, lease_owner = :owner,
    lease_until = :now::timestamptz + make_interval(secs => :lease), claim_seq = t.claim_seq + 1, tries = t.tries + 1
from members m
where t.id = m.id
returning t.id, m.head, t.claim_seq, t.tries, t.kind, t.event, t.transport, t.destination, t.bundle,
    t.idempotency_key, t.first_due_at, t.due_at, t.claimed_at;

-- name: messages_of
-- What the claimed rows say and to whom, read after the claim has committed. `heard` is false for an update to
-- somebody who was never sent the problem; a page that is still in flight when its update is due may have arrived.
select a.id, a.incident_id, a.claim_seq, a.cancel_requested, a.summary, a.user_id, a.channel_id,
    coalesce(m.address, c.address) as address, coalesce(m.secret, c.secret) as secret,
    u.email as user, coalesce(u.name, c.name) as recipient,
    i.title, i.details, i.status as incident_status, i.severity, i.service_name as service, i.dedup_key, i.link,
    a.kind <> 'NOTICE' or a.incident_id is null or exists (
        select from notification_attempt p
        where p.incident_id = a.incident_id and p.kind = 'PAGE' and p.status <> 'PENDING' and p.tries > 0
            and p.contact_method_id is not distinct from a.contact_method_id
            and p.channel_id is not distinct from a.channel_id
            and (p.delivered_at is not null or p.status = 'IN_FLIGHT' or exists (
                select from attempt_try t where t.attempt_id = p.id and t.outcome = 'unknown'))
    ) as heard
from notification_attempt a
left join contact_method m on m.id = a.contact_method_id
left join app_user u on u.id = a.user_id
left join channel c on c.id = a.channel_id
left join incident i on i.id = a.incident_id
where a.id = any(:ids::bigint[]);

-- name: settle
-- Records outcomes: rows locked in id order, guarded by the claim's number and owner. A late success counts while
-- nobody has claimed the row again; any other stale outcome changes nothing. Retry or give up is decided here.
with outcome as (
    select *
    from json_to_recordset(:outcomes::json) as o (id bigint, seq int, outcome text, delay float8, error text,
        started_at timestamptz, ended_at timestamptz, request text, answer text)
), locked as materialized (
    select t.id, t.incident_id, t.kind, t.tries, t.first_due_at, t.bundle, t.pace_seconds, t.claimed_at,
        t.status as was, o.seq, o.outcome, o.delay, o.error, o.started_at, o.ended_at, o.request, o.answer,
        case
            when o.outcome = 'DELIVERED' then 'DELIVERED'
            when t.cancel_requested or o.outcome = 'CANCELLED' then 'CANCELLED'
            when o.outcome = 'RELEASE' then 'PENDING'
            when o.outcome = 'LIMITED' and t.first_due_at > :now::timestamptz - interval '24 hours' then 'PENDING'
            when o.outcome in ('RETRY', 'UNKNOWN') and t.tries < t.max_tries then 'PENDING'
            else 'FAILED'
        end as next,
        t.kind = 'PAGE' and t.late_at is null and o.outcome not in ('RELEASE', 'CANCELLED')
            and o.started_at - t.first_due_at > make_interval(secs => :late) as late
    from notification_attempt t
    join outcome o on o.id = t.id
    -- The ids again as an array: of JSON the planner expects 100 rows, and would rather read a small table whole.
    where t.id = any(array(select id from outcome)) and t.claim_seq = o.seq and t.lease_owner = :owner
        and (t.status = 'IN_FLIGHT' or o.outcome = 'DELIVERED' and t.status in ('PENDING', 'FAILED', 'CANCELLED'))
    order by t.id
    for no key update of t
), settled as (
    update notification_attempt t
    set status = l.next, lease_until = null, last_error = case when l.outcome <> 'RELEASE' then l.error else t.last_error end,
        tries = t.tries - (l.outcome = 'RELEASE' or l.outcome = 'LIMITED' and l.next = 'PENDING')::int,
        due_at = case when l.next = 'PENDING' then :now::timestamptz + make_interval(secs => l.delay) else t.due_at end,
        cancel_requested = t.cancel_requested and l.next <> 'PENDING' and l.next <> 'FAILED',
        delivered_at = case when l.next = 'DELIVERED' then l.ended_at else t.delivered_at end,
        finished_at = case when l.next <> 'PENDING' then :now::timestamptz end,
        recheck = l.kind = 'PAGE' and l.next = 'FAILED',
        late_at = case when l.late then :now::timestamptz else t.late_at end
    from locked l
    where t.id = l.id
    returning t.id, l.seq, l.was, t.status, l.kind, t.transport
), tried as (
    insert into attempt_try (attempt_id, claim_seq, try, started_at, ended_at, outcome, error, request, answer)
    select l.id, l.seq, l.tries, l.started_at, l.ended_at,
        case
            when l.outcome = 'UNKNOWN' then 'unknown'
            when l.next = 'PENDING' then 'retry'
            else lower(l.next)
        end,
        l.error, l.request, l.answer
    from locked l
    where l.outcome <> 'RELEASE' and not (l.outcome = 'CANCELLED' and l.next = 'CANCELLED')
    on conflict (attempt_id, claim_seq) do update
        set outcome = excluded.outcome, error = excluded.error, ended_at = excluded.ended_at,
            request = excluded.request, answer = excluded.answer
), noted as (
    insert into incident_event (incident_id, at, event, data)
    select l.incident_id, :now,
        case when l.next = 'PENDING' then 'retry' else lower(l.next) end,
        jsonb_build_object('attempt', l.id, 'try', l.tries, 'error', l.error, 'unknown', l.outcome = 'UNKNOWN')
    from locked l
    where l.incident_id is not null and l.outcome <> 'RELEASE'
    order by l.id
), late as (
    insert into incident_event (incident_id, at, event, data)
    select l.incident_id, :now, 'late',
        jsonb_build_object('attempt', l.id, 'seconds', round(extract(epoch from l.started_at - l.first_due_at)))
    from locked l
    where l.late
), heard as (
    -- After a message its contact has a pause; one that did not arrive ends the turn, unless more of it is in the air.
    select bundle,
        max(claimed_at + make_interval(secs => pace_seconds)) filter (where next = 'DELIVERED') as until
    from locked
    where bundle is not null
    group by bundle
), turns as materialized (
    select c.bundle, coalesce(h.until, :now) as until
    from contact_turn c
    join heard h using (bundle)
    where c.owner = :owner and (h.until is not null or not exists (
        select from notification_attempt a
        where a.status = 'IN_FLIGHT' and a.bundle = c.bundle and a.lease_owner = :owner
            and a.id not in (select id from locked)))
    order by c.bundle
    for no key update of c
), paused as (
    update contact_turn c
    set until = t.until
    from turns t
    where c.bundle = t.bundle
)
select id, seq, was, status, kind, transport, false as lost from settled;

-- name: stale_outcomes
-- Outcomes that a settle refused: lost where the row has been claimed again or is gone, else closed already.
select o.id, o.seq, null as was, null as status, null as kind, null as transport,
    t.id is null or t.claim_seq <> o.seq or t.lease_owner is distinct from :owner as lost
from unnest(:ids::bigint[], :seqs::int[]) as o (id, seq)
left join notification_attempt t on t.id = o.id;

-- name: attempts_not_locked
-- Of these attempts, those that a settle need wait for nobody to record: neither the row nor its contact's turn is held.
with rows as materialized (
    select id, bundle from notification_attempt where id = any(:ids::bigint[]) for no key update skip locked
), turns as materialized (
    select bundle from contact_turn where bundle in (select bundle from rows) for no key update skip locked
)
select id
from rows r
where bundle is null or bundle in (select bundle from turns)
    or not exists (select from contact_turn t where t.bundle = r.bundle);

-- name: reap
-- Takes back rows whose lease ran out. Nobody knows whether they were delivered, and each says so; what is known and
-- only waits to be recorded stays.
with expired as materialized (
    select id, incident_id, kind, tries, claim_seq, claimed_at,
        case when cancel_requested then 'CANCELLED' when tries >= max_tries then 'FAILED' else 'PENDING' end as next
    from notification_attempt
    where status = 'IN_FLIGHT' and lease_until < :now and id <> all(:known::bigint[])
    order by lease_until
    limit 500
    for no key update skip locked
), tried as (
    insert into attempt_try (attempt_id, claim_seq, try, started_at, ended_at, outcome, error, request, answer)
    select id, claim_seq, tries, claimed_at, :now, 'unknown', 'the lease ran out: may have been delivered', '', ''
    from expired
    on conflict (attempt_id, claim_seq) do nothing
), noted as (
    insert into incident_event (incident_id, at, event, actor, data)
    select incident_id, :now, 'lease_expired', null, jsonb_build_object('attempt', id, 'try', tries, 'next', next)
    from expired
    where incident_id is not null
)
update notification_attempt t
set status = e.next, lease_until = null, last_error = 'the lease ran out: may have been delivered',
    due_at = case when e.next = 'PENDING' then :now::timestamptz else t.due_at end,
    finished_at = case when e.next <> 'PENDING' then :now::timestamptz end,
    recheck = e.kind = 'PAGE' and e.next = 'FAILED'
from expired e
where t.id = e.id
returning t.id, t.status;

-- name: recover
-- Gives back what this owner holds and does not know: a claim whose answer was lost with the connection.
with held as materialized (
    select t.id, t.cancel_requested, t.bundle, t.destination
    from notification_attempt t
    where t.status = 'IN_FLIGHT' and t.lease_owner = :owner
        and not exists (
            select from unnest(:ids::bigint[], :seqs::int[]) as k (id, seq) where k.id = t.id and k.seq = t.claim_seq)
    for no key update skip locked
), turns as materialized (
    select bundle
    from contact_turn
    where owner = :owner and bundle in (select bundle from held)
    order by bundle
    for no key update skip locked
), heard as (
    update contact_turn c set until = :now from turns t where c.bundle = t.bundle
), tried as materialized (
    select name
    from destination
    where turn_owner = :owner and name in (select destination from held)
    for no key update skip locked
), trying as (
    update destination d set turn_until = null from tried where d.name = tried.name
)
update notification_attempt t
set status = case when h.cancel_requested then 'CANCELLED' else 'PENDING' end,
    lease_until = null, tries = t.tries - 1,
    due_at = :now, finished_at = case when h.cancel_requested then :now::timestamptz end
from held h
where t.id = h.id
returning t.id;

-- name: whats_due^
-- The idle poll: what is due now, and when the next of each kind comes. One index probe each: min() reads one end of
-- its index, where exists() would have the planner believe that any scan soon meets a row. For steps that is spelled
-- out: with no statistics PostgreSQL 15 would have the minimum of all that another index holds.
select
    coalesce((select min(due_at) from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'high') <= :now, false) as high,
    coalesce((select min(due_at) from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'low') <= :now, false) as low,
    coalesce((select due_at from notification_attempt
        where status = 'PENDING' and kind = 'STEP' order by due_at limit 1) <= :now, false) as step,
    coalesce((select min(lease_until) from notification_attempt where status = 'IN_FLIGHT') < :now, false) as lease,
    (select min(incident_id) from notification_attempt where recheck) is not null as recheck,
    coalesce((select min(wake_at) from incident where wake_at is not null) <= :now, false) as wake,
    coalesce((select min(late_at) from heartbeat where late_at is not null) <= :now, false) as beat,
    least(
        (select min(due_at) from notification_attempt
            where status = 'PENDING' and kind <> 'STEP' and lane = 'high' and due_at > :now),
        (select min(due_at) from notification_attempt
            where status = 'PENDING' and kind <> 'STEP' and lane = 'low' and due_at > :now),
        (select due_at from notification_attempt
            where status = 'PENDING' and kind = 'STEP' and due_at > :now order by due_at limit 1),
        (select min(lease_until) from notification_attempt where status = 'IN_FLIGHT' and lease_until >= :now),
        (select min(wake_at) from incident where wake_at is not null and wake_at > :now),
        (select min(late_at) from heartbeat where late_at is not null and late_at > :now)
    ) as next_at;

-- name: replay_attempts
-- A person sends FAILED pages again, under the incident's lock: a new key, and more tries. What leads nowhere any more
-- stays as it is.
with locked as materialized (
    select id
    from notification_attempt a
    where incident_id = :incident_id and id = any(:ids::bigint[]) and kind = 'PAGE' and status = 'FAILED'
        and still_there(a.contact_method_id, a.channel_id)
    order by id
    for no key update
)
update notification_attempt t
set status = 'PENDING', finished_at = null, due_at = :now, first_due_at = :now, replays = t.replays + 1,
    max_tries = t.tries + :more, lease_owner = null, recheck = false, last_error = null, late_at = null,
    idempotency_key = gen_random_uuid()::text
from locked l
where t.id = l.id
returning t.id;

-- name: failed_attempts
-- The FAILED pages a replay of many goes through, oldest first.
select id, incident_id
from notification_attempt
where status = 'FAILED' and kind = 'PAGE' and (:transport::text is null or transport = :transport)
    and (:ids::bigint[] is null or id = any(:ids::bigint[])) and id > :after
order by id
limit 500;

-- name: hold_destination!
-- A send failed: the destination is tried more carefully, and not before the given time.
insert into destination (name, failures, not_before, reason, changed_at)
values (:name, :failures, :not_before, :reason, :now)
on conflict (name) do update
set failures = destination.failures + excluded.failures,
    not_before = greatest(destination.not_before, excluded.not_before),
    reason = excluded.reason, changed_at = excluded.changed_at,
    turn_until = case when destination.turn_owner = :owner then null else destination.turn_until end;

-- name: free_destination!
-- A send went through: nothing is wrong with this destination, though a wait that it asked for stays.
with gone as (
    delete from destination where name = :name and not_before <= :now
)
update destination set failures = 0, turn_until = null where name = :name and not_before > :now;

-- name: release_destinations!
-- A try that says nothing of its destination ends the turn.
update destination set turn_until = null where name = any(:names::text[]) and turn_owner = :owner;

-- name: gates
-- What is held back: destinations that something is wrong with, and contacts that wait (these have no reason).
select name, failures, not_before, reason, turn_until from destination
union all
select bundle, 0, until, null, null from contact_turn where until > :now;

-- name: archive_attempts
-- Finished rows leave the hot table, a bounded batch at a time: those of incidents resolved before the given time, and
-- updates that belong to no incident (tests, verifications) by age alone. The columns are named: a newer schema may
-- have more of them while this code still runs.
with of_resolved as materialized (
    select a.id
    from notification_attempt a
    join incident i on i.id = a.incident_id
    where a.status in ('DELIVERED', 'CANCELLED') and a.finished_at < :before
        and i.status = 'RESOLVED' and i.resolved_at < :before
    order by a.finished_at, a.id
    limit :n
    for no key update of a skip locked
), loose as materialized (
    select id
    from notification_attempt
    where status in ('DELIVERED', 'FAILED', 'CANCELLED') and incident_id is null and finished_at < :before
    order by finished_at, id
    limit :n
    for no key update skip locked
), moved as (
    delete from notification_attempt a
    using (select id from of_resolved union all select id from loose) finished
    where a.id = finished.id
    returning a.*
)
insert into notification_attempt_archive (
    id, incident_id, kind, event, status, lane, round, step, recipient, target, user_id, contact_method_id,
    channel_id, transport, destination, bundle, pace_seconds, due_at, first_due_at, tries, max_tries, replays,
    claimed_at, lease_owner, lease_until, claim_seq, cancel_requested, recheck, idempotency_key, summary,
    last_error, delivered_at, finished_at)
select
    id, incident_id, kind, event, status, lane, round, step, recipient, target, user_id, contact_method_id,
    channel_id, transport, destination, bundle, pace_seconds, due_at, first_due_at, tries, max_tries, replays,
    claimed_at, lease_owner, lease_until, claim_seq, cancel_requested, recheck, idempotency_key, summary,
    last_error, delivered_at, finished_at
from moved
returning id;

-- name: attempt_incident
-- The incident that an attempt belongs to, and whether its contact method or channel is still there.
select incident_id, kind, status, still_there(a.contact_method_id, a.channel_id) as reachable
from notification_attempt a
where id = :id;

-- name: failures
-- What has just failed for good, as people know it.
select a.id, a.incident_id, coalesce(u.email, 'channel ' || c.name, 'somebody who is gone') as who, a.transport,
    coalesce(a.last_error, 'no reason is known') as reason
from notification_attempt a
left join app_user u on u.id = a.user_id
left join channel c on c.id = a.channel_id
where a.id = any(:ids::bigint[])
order by a.id;
