-- name: password_of
-- What a login is checked against.
select id, password_hash from app_user where lower(email) = lower(:email);

-- name: count_guess^
-- One more guess for this subject; the count begins again once its time is over.
insert into login_guess (subject, guesses, until)
values (:subject, 1, :now::timestamptz + make_interval(secs => :window))
on conflict (subject) do update
set guesses = case when login_guess.until <= :now then 1 else login_guess.guesses + 1 end,
    until = case when login_guess.until <= :now then excluded.until else login_guess.until end
returning guesses, until;

-- name: forgive_guess!
-- The guess was right, so it does not count.
update login_guess set guesses = guesses - 1 where subject = any(:subjects::text[]) and guesses > 0;

-- name: forget_guesses!
-- Counts whose time is over.
delete from login_guess where until <= :now;

-- name: forget_account!
-- The count of one account begins anew.
delete from login_guess where subject = :subject;

-- name: start_session!
-- A login, as a row: it can be ended from here.
insert into session (session_hash, user_id, created_at, last_seen_at, expires_at, address, agent)
values (:session_hash, :user_id, :now, :now, :now::timestamptz + make_interval(days => :days), :address, :agent);

-- name: sessions_of
-- A person's sessions that are not over, the one used last first.
select session_hash, created_at, last_seen_at, address, agent
from session
where user_id = :user_id and expires_at > :now
    and last_seen_at > :now::timestamptz - make_interval(days => :idle_days)
order by last_seen_at desc, created_at desc;

-- name: session_user
-- Whose session this is, unless it is too old or was left alone for too long.
select u.id, u.email, u.role, s.last_seen_at
from session s
join app_user u on u.id = s.user_id
where s.session_hash = :session_hash and s.expires_at > :now
    and s.last_seen_at > :now::timestamptz - make_interval(days => :idle_days);

-- name: see_session!
-- It is in use: the time of being left alone begins anew.
update session set last_seen_at = :now where session_hash = :session_hash;

-- name: end_session!
-- Logs out.
delete from session where session_hash = :session_hash;

-- name: end_sessions_of!
-- Logs a person out everywhere.
delete from session where user_id = :user_id;

-- name: forget_sessions!
-- Sessions that are over.
delete from session
where expires_at <= :now or last_seen_at <= :now::timestamptz - make_interval(days => :idle_days);
