-- name: push_addresses
-- The subscriptions of one person.
select m.address
from contact_method m
join app_user u on u.id = m.user_id
where lower(u.email) = lower(:email) and m.kind = 'push';

-- name: drop_gone_subscriptions
-- Of these attempts, those whose push service answered 404 or 410 lose their contact method. An address is never
-- changed by a page, so the row is the subscription that was tried.
delete from contact_method m
using app_user u
where u.id = m.user_id and m.kind = 'push' and m.id in (
    select a.contact_method_id
    from notification_attempt a
    join attempt_try t on t.attempt_id = a.id and t.claim_seq = a.claim_seq
    where a.id = any(:ids::bigint[]) and a.status = 'FAILED' and a.transport = 'push'
        and t.answer ~ '^(404|410)( |$)')
returning u.email, m.name;

-- name: drop_subscription
-- One browser of a person's is pushed to no more.
delete from contact_method m
using app_user u
where u.id = m.user_id and m.kind = 'push' and m.id = :id and m.user_id = :user_id
returning u.email, m.name;
