-- name: prepare_session$
-- Autocommit statements ignore psycopg's isolation_level, so the default itself is pinned: on a database set to
-- repeatable read, claims and settles would fail with 40001. The limits keep a stalled holder from blocking others.
-- First the process that answers: behind a pooler it is not the one that was named at the start.
select pg_backend_pid(), set_config('default_transaction_isolation', 'read committed', false),
    set_config('timezone', 'UTC', false),
    set_config('lock_timeout', :lock_ms, false),
    set_config('statement_timeout', :statement_ms, false),
    set_config('idle_in_transaction_session_timeout', :idle_ms, false);

-- name: wait_at_most!
-- For this transaction alone: how long a lock may be waited for, in milliseconds.
select set_config('lock_timeout', :lock_ms, true);

-- name: plan_once!
-- The engine asks the same few questions all the time, and each has one sensible plan (tests say which): planning
-- them again would take as long as answering them. What is planned while a table is small is kept until its next
-- ANALYZE, a minute into a storm maybe: so no plan may read a whole table where an index would do. Before PostgreSQL
-- 18 that makes what must be read whole look so dear that it would be compiled.
select set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false),
    set_config('jit', 'off', false);

-- name: undo!
-- Takes back all that the transaction did, and begins the next.
rollback and chain;
