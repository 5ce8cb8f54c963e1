-- name: notify_engines!
-- Wakes the engines of other instances when this transaction commits.
select pg_notify('escalade', '');

-- name: listen_for_others!
-- Asks for the notifications of other instances, on a connection used for nothing else.
listen escalade;
