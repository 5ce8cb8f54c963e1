-- name: engine_ticked!
-- Says that this engine goes round, so that a process without one can tell.
insert into engine_instance (owner, started_at, last_tick_at)
values (:owner, :now, :now)
on conflict (owner) do update set last_tick_at = excluded.last_tick_at;

-- name: engine_stopped!
-- This engine ends in good order; engines that ended otherwise are forgotten after a day.
with ran as (
    update delivery set last_tick_at = greatest(last_tick_at, :now)
)
delete from engine_instance where owner = :owner or last_tick_at < :now::timestamptz - interval '1 day';
