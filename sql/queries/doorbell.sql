-- name: notify_engines!
-- Wakes the engines of other instances when this transaction commits.
select pg_notify('escalade', '');
