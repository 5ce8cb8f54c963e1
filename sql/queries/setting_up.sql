-- name: rename_user!
-- Another e-mail for a person, who stays the same.
update app_user set email = :name where id = :id;

-- name: rename_channel!
-- Another name for a channel.
update channel set name = :name where id = :id;

-- name: rename_schedule!
-- Another name for a schedule.
update schedule set name = :name where id = :id;

-- name: rename_policy!
-- Another name for a policy; incidents under way keep the one they began with.
update escalation_policy set name = :name where id = :id;

-- name: rename_service!
-- Another name for a service.
update service set name = :name where id = :id;

-- name: rename_contact_method!
-- Another name for a contact method.
update contact_method set name = :name where id = :id;

-- name: rename_rotation!
-- Another name for a rotation.
update rotation set name = :name where id = :id;

-- name: rename_integration!
-- Another name for an integration; its key stays.
update integration set name = :name where id = :id;

-- name: rename_heartbeat!
-- Another name for a heartbeat; its key stays.
update heartbeat set name = :name where id = :id;
