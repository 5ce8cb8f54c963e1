-- name: mark_late
-- Pages of a lane that are due for too long and have not left: each is said to be late once. Whoever sends one that
-- is held here says it when it records the send. Those of before the last look have been said.
with late as materialized (
    select id, incident_id, due_at, first_due_at
    from notification_attempt
    where status = 'PENDING' and kind <> 'STEP' and lane = :lane and due_at >= :after and due_at < :before
        and kind = 'PAGE' and late_at is null
    order by due_at, id
    limit :n
    for no key update skip locked
), marked as (
    update notification_attempt t set late_at = :now from late l where t.id = l.id
), noted as (
    insert into incident_event (incident_id, at, event, actor, data)
    select incident_id, :now, 'late', null,
        jsonb_build_object('attempt', id, 'seconds', round(extract(epoch from :now - first_due_at)), 'waiting', true)
    from late
    where incident_id is not null
    order by id
)
select due_at from late order by due_at;

-- name: oldest_overdue$
-- When the first of what is due for too long was due, without what its receiver or the pace of its contact holds back.
select min(due_at)
from (
    select min(a.due_at) as due_at
    from notification_attempt a
    where a.status = 'PENDING' and a.kind <> 'STEP' and a.lane in ('high', 'low') and a.due_at < :before
        and not exists (select from destination d where d.name = a.destination)
        and not exists (select from contact_turn c where c.bundle = a.bundle and c.until > :now)
    union all
    select min(due_at) from notification_attempt where status = 'PENDING' and kind = 'STEP' and due_at < :before
    union all
    select min(lease_until) from notification_attempt where status = 'IN_FLIGHT' and lease_until < :before
) overdue;
