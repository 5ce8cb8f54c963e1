-- name: setting_by_name$
-- One setting's value.
select value from setting where name = :name;

-- name: put_setting!
-- Writes a setting.
insert into setting (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;

-- name: put_setting_once!
-- Writes a setting unless it is there: two processes that start at once agree.
insert into setting (name, value) values (:name, :value) on conflict (name) do nothing;
