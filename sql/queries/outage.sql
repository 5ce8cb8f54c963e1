-- name: lock_delivery$
-- When any engine last went round, as far as is known; held until the end of the transaction.
insert into delivery as d (last_tick_at) values (null)
on conflict (one) do update set last_tick_at = d.last_tick_at
returning greatest(d.last_tick_at, (select max(last_tick_at) from engine_instance));

-- name: delivery_ran!
-- An engine goes round now.
update delivery set last_tick_at = greatest(last_tick_at, :now);

-- name: late_for_outage
-- What was due and has not left: the first of it, each row with how much there is in all (counted to 10,000 a kind).
select id, incident_id, kind, due_at, count(*) over () as total
from (
    (select id, incident_id, kind, due_at from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'high' and due_at <= :now limit 10000)
    union all
    (select id, incident_id, kind, due_at from notification_attempt
        where status = 'PENDING' and kind <> 'STEP' and lane = 'low' and due_at <= :now limit 10000)
    union all
    (select id, incident_id, kind, due_at from notification_attempt
        where status = 'PENDING' and kind = 'STEP' and due_at <= :now limit 10000)
    union all
    (select id, incident_id, kind, due_at from notification_attempt
        where status = 'IN_FLIGHT' and lease_until < :now limit 10000)
) late
where kind <> 'NOTICE'
order by due_at, id
limit :n;

-- name: insert_outage!
-- Delivery was down; the last thousand such times are kept.
with forgotten as (
    delete from outage where id <= (select max(id) from outage) - 1000
)
insert into outage (began_at, ended_at, late_pages, pages) values (:began_at, :now, :late_pages, :pages);

-- name: latest_outage
-- The last time that delivery was down, if that ended since then.
select began_at, ended_at, late_pages, pages from outage where ended_at > :since order by id desc limit 1;
