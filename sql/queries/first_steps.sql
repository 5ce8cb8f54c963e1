-- name: remove_setting!
-- A setting is no more.
delete from setting where name = :name;

-- name: contact_kinds_of
-- How a person is reached, in their order.
select kind from contact_method where user_id = :user_id and verified order by position, id;

-- name: service_named
-- Whether there is a service of this name.
select name from service where name = :name;

-- name: replace_key!
-- Another key for an integration; the old one works no more.
update integration set key_hash = :key_hash, key_prefix = :key_prefix where id = :id;

-- name: latest_incident_of
-- The incident of a service that was opened last.
select i.*
from incident i
join service s on s.id = i.service_id
where s.name = :name
order by i.id desc
limit 1;
