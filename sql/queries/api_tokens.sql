-- name: create_api_token
-- One more token; nothing where the name is taken.
insert into api_token (name, token_hash, role, created_at, expires_at, created_by)
values (:name, :token_hash, :role, :now, :expires_at, :created_by)
on conflict (name) do nothing
returning id, name, role, created_at, last_used_at, expires_at, created_by;

-- name: api_token_by_hash
-- The token that a request carries, unless its time is over.
select id, name, role, created_at, last_used_at, expires_at, created_by
from api_token
where token_hash = :token_hash and (expires_at is null or expires_at > :now);

-- name: use_api_token!
-- When it was last used.
update api_token set last_used_at = :now where id = :id;

-- name: all_api_tokens
-- Every token, by name.
select id, name, role, created_at, last_used_at, expires_at, created_by from api_token order by name;

-- name: revoke_api_token!
-- The token opens nothing any more.
delete from api_token where name = :name;
