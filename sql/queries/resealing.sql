-- name: kept_secrets
-- Whatever is a secret, where it is kept.
select 'contact method' as noun, u.email || '/' || m.name as name, m.id, m.kind, m.address, m.secret
from contact_method m
join app_user u on u.id = m.user_id
union all
select 'channel', name, id, kind, address, secret from channel
union all
select 'integration', s.name || '/' || n.name, n.id, n.kind, '', n.secret
from integration n
join service s on s.id = n.service_id
union all
select 'setting', name, 0, '', '', value #>> '{}' from setting where name = 'push_key'
order by 1, 2;

-- name: reseal_contact_method!
-- The same secret under another key.
update contact_method set address = :address, secret = :secret where id = :id;

-- name: reseal_channel!
-- The same secret under another key.
update channel set address = :address, secret = :secret where id = :id;

-- name: reseal_integration!
-- The same secret under another key; an integration has no address.
update integration set secret = :secret where id = :id and :address = '';

-- name: reseal_setting!
-- The same secret under another key. There is one such setting: what Web Push is signed with.
update setting set value = to_jsonb(:secret::text) where name = 'push_key' and :id = 0 and :address = '';
