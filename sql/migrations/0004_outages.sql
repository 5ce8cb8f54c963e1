-- When delivery last ran, also after every engine has ended in good order: one row, which is also the lock of those
-- who look for a gap at the same time.
create table delivery (
    one boolean primary key default true check (one),
    last_tick_at timestamptz
);

-- Each time that delivery was down, and the first of the pages that were late for it.
create table outage (
    id bigint generated always as identity primary key,
    began_at timestamptz not null,
    ended_at timestamptz not null,
    late_pages integer not null,
    pages jsonb not null,
    check (ended_at > began_at)
);

-- When a page was said to be late: once for each page, and once more for each replay.
alter table notification_attempt add column late_at timestamptz;
