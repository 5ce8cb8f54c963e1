-- name: user_by_id
-- One person.
select id, email, name, role, timezone, password_hash is not null as has_password, created_at
from app_user
where id = :id;

-- name: user_by_email
-- One person by e-mail, in whatever case it is written.
select id, email, name, role, timezone, password_hash is not null as has_password, created_at
from app_user
where lower(email) = lower(:email);

-- name: users_by_id
-- The people with the given ids.
select id, email, name, role, timezone, password_hash is not null as has_password, created_at
from app_user
where id = any(:ids::bigint[]);

-- name: all_users
-- Everybody, by e-mail.
select id, email, name, role, timezone, password_hash is not null as has_password, created_at
from app_user
order by lower(email);

-- name: create_user
-- One more person, without a password; nothing where the e-mail is taken.
insert into app_user (email, name, role, timezone, created_at)
values (:email, :name, :role, :timezone, :now)
on conflict ((lower(email))) do nothing
returning id, email, name, role, timezone, password_hash is not null as has_password, created_at;

-- name: change_user!
-- What a person is called, may do, and where they live.
update app_user set name = :name, role = :role, timezone = :timezone where id = :id;

-- name: set_password!
-- A new password.
update app_user set password_hash = :password_hash where id = :id;

-- name: remove_user!
-- A person leaves; their contact methods, rules and sessions go with them.
delete from app_user where id = :id;

-- name: anybody_with_password$
-- Whether anybody can log in.
select exists (select from app_user where password_hash is not null);

-- name: lock_admins
-- The admins who can log in, held so that two of them cannot remove each other.
select id from app_user where role = 'admin' and password_hash is not null order by id for update;
