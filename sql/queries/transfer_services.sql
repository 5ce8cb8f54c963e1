-- name: transfer_insert_service$
-- A new service.
insert into service (name, policy_id, urgency, ack_timeout_seconds, auto_resolve_seconds)
values (:name, :policy_id, :urgency, :ack_timeout, :auto_resolve)
returning id;

-- name: transfer_update_service!
-- Makes a service what the file says; incidents under way keep what they began with.
update service
set name = :name, policy_id = :policy_id, urgency = :urgency, ack_timeout_seconds = :ack_timeout,
    auto_resolve_seconds = :auto_resolve
where id = :id;

-- name: transfer_delete_service!
-- Removes a service with its integrations and heartbeats; its incidents stay.
delete from service where id = :id;

-- name: transfer_release_integration_keys!
-- Lets go of keys that are about to change or to go, so that they can move from one integration to another.
update integration set key_hash = 'released ' || id where id = any(:ids::bigint[]);

-- name: transfer_insert_integration$
-- A new integration.
insert into integration (service_id, name, kind, key_hash, key_prefix, secret, verify)
values (:service_id, :name, :kind, :key_hash, :key_prefix, :secret, :verify)
returning id;

-- name: transfer_update_integration!
-- Makes an integration what the file says.
update integration
set name = :name, kind = :kind, key_hash = :key_hash, key_prefix = :key_prefix, secret = :secret, verify = :verify
where id = :id and service_id = :service_id;

-- name: transfer_delete_integration!
-- Removes an integration.
delete from integration where id = :id;

-- name: transfer_release_heartbeat_keys!
-- As for integrations.
update heartbeat set key_hash = 'released ' || id where id = any(:ids::bigint[]);

-- name: transfer_insert_heartbeat$
-- A new heartbeat; its first beat arms it.
insert into heartbeat (service_id, name, interval_seconds, grace_seconds, key_hash, key_prefix, paused)
values (:service_id, :name, :interval, :grace, :key_hash, :key_prefix, :paused)
returning id;

-- name: transfer_update_heartbeat!
-- Makes a heartbeat what the file says. One that goes on after a pause gets a whole interval; a new interval counts
-- from the last beat; one that is late already (or not armed) has no late_at, and stays so until it beats.
update heartbeat
set name = :name, interval_seconds = :interval::integer, grace_seconds = :grace::integer,
    key_hash = :key_hash, key_prefix = :key_prefix, paused = :paused,
    late_at = case
        when :paused::text is not null or last_beat_at is null then null
        when paused is not null then :now::timestamptz + make_interval(secs => :interval::integer + :grace::integer)
        when late_at is null or (interval_seconds, grace_seconds) = (:interval::integer, :grace::integer) then late_at
        else last_beat_at + make_interval(secs => :interval::integer + :grace::integer) end
where id = :id and service_id = :service_id;

-- name: transfer_delete_heartbeat!
-- Removes a heartbeat.
delete from heartbeat where id = :id;
