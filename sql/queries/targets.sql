-- name: channel_by_name
-- One channel.
select id, name from channel where name = :name;
