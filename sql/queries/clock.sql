-- name: clock$
-- The one place that asks for the time; everything else is given it as `now`.
select clock_timestamp();
