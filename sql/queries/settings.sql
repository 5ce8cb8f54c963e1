-- name: setting_by_name$
-- One setting's value.
select value from setting where name = :name;

-- name: put_setting!
-- Writes a setting.
insert into setting (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;

-- name: put_setting_once!
-- Writes a setting unless it is there: two processes that start at once agree.
insert into setting (name, value) values (:name, :value) on conflict (name) do nothing;

-- name: add_start_token!
-- One more link for the first login, in front of those of other processes: the last five work.
insert into setting (name, value) values ('start_token', jsonb_build_array(:token_hash::text))
on conflict (name) do update
set value = jsonb_path_query_array(excluded.value || setting.value, '$[0 to 4]');
