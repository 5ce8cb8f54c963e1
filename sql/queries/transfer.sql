-- name: lock_configuration!
-- Whoever applies a file waits for others that change the configuration, and they for it: what was checked still
-- holds when it is written. Reading, paging, alerts and heartbeats go on.
lock table app_user, contact_method, notification_rule, channel, schedule, rotation, roster_change, override,
    escalation_policy, escalation_step, escalation_target, service, integration, setting
    in share row exclusive mode;
