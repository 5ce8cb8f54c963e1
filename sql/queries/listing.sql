-- name: find_waiting
-- What waits or is in the air, the next due first, by every filter of the page; an arm per partial index, and per lane
-- of one. `at` and `id` say where the page goes on.
with wanted as (
    (select a.id, a.due_at from notification_attempt a
        where a.status = 'PENDING' and a.kind <> 'STEP' and a.lane = 'high' and :status::text = 'PENDING'
            and (:transport::text is null or a.transport = :transport)
            and (:user_id::bigint is null or a.user_id = :user_id)
            and (:channel_id::bigint is null or a.channel_id = :channel_id)
            and (:service::text is null or exists (
                select from incident i where i.id = a.incident_id and i.service_name = :service))
            and (:since::timestamptz is null or a.due_at >= :since) and (:until::timestamptz is null or a.due_at < :until)
            and (:at::timestamptz is null or (a.due_at, a.id) > (:at::timestamptz, :id::bigint))
        order by a.due_at, a.id limit :n)
    union all
    (select a.id, a.due_at from notification_attempt a
        where a.status = 'PENDING' and a.kind <> 'STEP' and a.lane = 'low' and :status::text = 'PENDING'
            and (:transport::text is null or a.transport = :transport)
            and (:user_id::bigint is null or a.user_id = :user_id)
            and (:channel_id::bigint is null or a.channel_id = :channel_id)
            and (:service::text is null or exists (
                select from incident i where i.id = a.incident_id and i.service_name = :service))
            and (:since::timestamptz is null or a.due_at >= :since) and (:until::timestamptz is null or a.due_at < :until)
            and (:at::timestamptz is null or (a.due_at, a.id) > (:at::timestamptz, :id::bigint))
        order by a.due_at, a.id limit :n)
    union all
    (select a.id, a.due_at from notification_attempt a
        where a.status = 'PENDING' and a.kind = 'STEP' and :status::text = 'PENDING'
            and (:transport::text is null or a.transport = :transport)
            and (:user_id::bigint is null or a.user_id = :user_id)
            and (:channel_id::bigint is null or a.channel_id = :channel_id)
            and (:service::text is null or exists (
                select from incident i where i.id = a.incident_id and i.service_name = :service))
            and (:since::timestamptz is null or a.due_at >= :since) and (:until::timestamptz is null or a.due_at < :until)
            and (:at::timestamptz is null or (a.due_at, a.id) > (:at::timestamptz, :id::bigint))
        order by a.due_at, a.id limit :n)
    union all
    (select a.id, a.due_at from notification_attempt a
        where a.status = 'IN_FLIGHT' and :status::text = 'IN_FLIGHT'
            and (:transport::text is null or a.transport = :transport)
            and (:user_id::bigint is null or a.user_id = :user_id)
            and (:channel_id::bigint is null or a.channel_id = :channel_id)
            and (:service::text is null or exists (
                select from incident i where i.id = a.incident_id and i.service_name = :service))
            and (:since::timestamptz is null or a.due_at >= :since) and (:until::timestamptz is null or a.due_at < :until)
            and (:at::timestamptz is null or (a.due_at, a.id) > (:at::timestamptz, :id::bigint))
        order by a.due_at, a.id limit :n)
    order by due_at, id
    limit :n
)
select *
from attempt_overview
where id = any(array(select id from wanted)) and not archived
order by due_at, id;

-- name: find_ended
-- What has ended, the latest first, by every filter of the page. What failed has an index of its own: it is rare.
with wanted as (
    (select a.id, a.finished_at from notification_attempt a
        where a.status = 'FAILED' and :status::text = 'FAILED'
            and (:transport::text is null or a.transport = :transport)
            and (:user_id::bigint is null or a.user_id = :user_id)
            and (:channel_id::bigint is null or a.channel_id = :channel_id)
            and (:service::text is null or exists (
                select from incident i where i.id = a.incident_id and i.service_name = :service))
            and (:since::timestamptz is null or a.finished_at >= :since) and (:until::timestamptz is null or a.finished_at < :until)
            and (:at::timestamptz is null or (a.finished_at, a.id) < (:at::timestamptz, :id::bigint))
        order by a.finished_at desc, a.id desc limit :n)
    union all
    (select a.id, a.finished_at from notification_attempt a
        where a.status in ('DELIVERED', 'FAILED', 'CANCELLED') and a.status = :status and :status::text <> 'FAILED'
            and (:transport::text is null or a.transport = :transport)
            and (:user_id::bigint is null or a.user_id = :user_id)
            and (:channel_id::bigint is null or a.channel_id = :channel_id)
            and (:service::text is null or exists (
                select from incident i where i.id = a.incident_id and i.service_name = :service))
            and (:since::timestamptz is null or a.finished_at >= :since) and (:until::timestamptz is null or a.finished_at < :until)
            and (:at::timestamptz is null or (a.finished_at, a.id) < (:at::timestamptz, :id::bigint))
        order by a.finished_at desc, a.id desc limit :n)
    order by finished_at desc, id desc
    limit :n
)
select *
from attempt_overview
where id = any(array(select id from wanted)) and not archived
order by finished_at desc, id desc;

-- name: attempts_by_ids
-- The given attempts, without the archive.
select * from attempt_overview where id = any(:ids::bigint[]) and not archived order by id;

-- name: who_is_on
-- Of the given incidents, those that nobody needs to be paged for, and why.
select id, status, coalesce(resolved_by, acknowledged_by) as by, snoozed_until
from incident
where id = any(:ids::bigint[]) and (status <> 'TRIGGERED' or snoozed_until is not null);

-- name: transports_in_use
-- The transports that people and channels are reached by, for the filter.
select kind from contact_method union select kind from channel order by kind;
