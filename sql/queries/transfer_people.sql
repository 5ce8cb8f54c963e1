-- name: transfer_insert_user$
-- A new person; a login takes a password, which no file holds.
insert into app_user (email, name, role, timezone, created_at)
values (:email, :name, :role, :timezone, :now)
returning id;

-- name: transfer_update_user!
-- Makes a person what the file says; the password stays.
update app_user set email = :email, name = :name, role = :role, timezone = :timezone where id = :id;

-- name: transfer_delete_user!
-- Removes a person with contact methods, rules and sessions.
delete from app_user where id = :id;

-- name: transfer_insert_contact_method$
-- A new contact method; from a file it counts as verified.
insert into contact_method (
    user_id, name, kind, address, secret, updates, pace_seconds, destination, verified, position)
values (:user_id, :name, :kind, :address, :secret, :updates, :pace, :destination, true, :position)
returning id;

-- name: transfer_update_contact_method!
-- Makes a contact method what the file says. It keeps its id, which pages under way refer to.
update contact_method
set name = :name, kind = :kind, address = :address, secret = :secret, updates = :updates, pace_seconds = :pace,
    destination = :destination, verified = true, position = :position
where id = :id and user_id = :user_id;

-- name: transfer_delete_contact_method!
-- Removes a contact method with the rules that use it.
delete from contact_method where id = :id;

-- name: transfer_delete_rules!
-- Makes room for a person's rules as the file has them.
delete from notification_rule where user_id = :user_id;

-- name: transfer_insert_rule!
-- One rule of a person, by the name of its contact method.
insert into notification_rule (user_id, contact_method_id, after_seconds, urgency, position)
select :user_id, id, :after, :urgency, :position
from contact_method
where user_id = :user_id and name = :contact_method;

-- name: transfer_insert_channel$
-- A new channel.
insert into channel (name, kind, address, secret, updates, pace_seconds, destination)
values (:name, :kind, :address, :secret, :updates, :pace, :destination)
returning id;

-- name: transfer_update_channel!
-- Makes a channel what the file says.
update channel
set name = :name, kind = :kind, address = :address, secret = :secret, updates = :updates, pace_seconds = :pace,
    destination = :destination
where id = :id;

-- name: transfer_delete_channel!
-- Removes a channel.
delete from channel where id = :id;
