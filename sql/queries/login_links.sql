-- name: add_login_link!
-- One more link by which this person may set a password.
insert into login_link (token_hash, user_id, kind, created_by, created_at, expires_at)
values (:token_hash, :user_id, :kind, :created_by, :now, :now::timestamptz + make_interval(secs => :seconds));

-- name: drop_login_links!
-- A person's earlier links work no more.
delete from login_link where user_id = :user_id;

-- name: login_link
-- Whose link this is, unless it is over.
select u.id, u.email, u.name, u.role
from login_link l
join app_user u on u.id = l.user_id
where l.token_hash = :token_hash and l.kind = :kind and l.expires_at > :now;

-- name: take_login_link$
-- The link is used; whose it was, nothing where somebody else was first or it is over.
delete from login_link where token_hash = :token_hash and kind = :kind and expires_at > :now returning user_id;

-- name: forget_login_links!
-- Links that are over.
delete from login_link where expires_at <= :now;
