-- People and how to reach them.

create table app_user (
    id bigint generated always as identity primary key,
    email text not null,
    name text not null,
    role text not null check (role in ('admin', 'responder', 'viewer')),
    timezone text not null,
    password_hash text,
    created_at timestamptz not null
);
create unique index app_user_email on app_user (lower(email));

-- destination is "transport:host", the unit that one gate guards; pace_seconds is the least time between two messages.
create table contact_method (
    id bigint generated always as identity primary key,
    user_id bigint not null references app_user on delete cascade,
    name text not null,
    kind text not null,
    address text not null,
    secret text,
    updates boolean not null,
    pace_seconds integer not null check (pace_seconds >= 0),
    destination text not null,
    verified boolean not null,
    position integer not null,
    unique (user_id, name)
);

create table notification_rule (
    id bigint generated always as identity primary key,
    user_id bigint not null references app_user on delete cascade,
    contact_method_id bigint not null references contact_method on delete cascade,
    after_seconds integer not null check (after_seconds >= 0),
    urgency text check (urgency in ('high', 'low')),
    position integer not null
);
create index notification_rule_user on notification_rule (user_id);
create index notification_rule_contact_method on notification_rule (contact_method_id);

create table channel (
    id bigint generated always as identity primary key,
    name text not null unique,
    kind text not null,
    address text not null,
    secret text,
    updates boolean not null,
    pace_seconds integer not null check (pace_seconds >= 0),
    destination text not null
);

-- Who is on call. Participants are user ids without a foreign key: a person who is gone stays in the lists of the
-- past, so that deleting them does not move anybody's turn; a roster change takes them out from that moment on.

create table schedule (
    id bigint generated always as identity primary key,
    name text not null unique,
    timezone text not null
);

create table rotation (
    id bigint generated always as identity primary key,
    schedule_id bigint not null references schedule on delete cascade,
    name text not null,
    position integer not null,
    participants bigint[] not null,
    unit text not null check (unit in ('hour', 'day', 'week')),
    length integer not null check (length > 0),
    start_date date not null,
    handoff_time time not null,
    restrictions jsonb not null,
    unique (schedule_id, name)
);

create table roster_change (
    id bigint generated always as identity primary key,
    rotation_id bigint not null references rotation on delete cascade,
    at timestamptz not null,
    participants bigint[] not null
);
create index roster_change_rotation on roster_change (rotation_id);

create table override (
    id bigint generated always as identity primary key,
    schedule_id bigint not null references schedule on delete cascade,
    kind text not null check (kind in ('take', 'replace', 'remove')),
    user_id bigint references app_user on delete set null,
    replaces_id bigint references app_user on delete set null,
    start_at timestamptz not null,
    end_at timestamptz not null,
    source text not null check (source in ('yaml', 'person')),
    created_by text not null,
    check (end_at > start_at)
);
create index override_schedule on override (schedule_id, end_at);
create index override_user on override (user_id);

-- Whom an incident climbs to.

create table escalation_policy (
    id bigint generated always as identity primary key,
    name text not null unique,
    repeat integer not null check (repeat >= 0)
);

create table escalation_step (
    id bigint generated always as identity primary key,
    policy_id bigint not null references escalation_policy on delete cascade,
    position integer not null,
    wait_seconds integer not null check (wait_seconds > 0),
    unique (policy_id, position)
);

create table escalation_target (
    id bigint generated always as identity primary key,
    step_id bigint not null references escalation_step on delete cascade,
    position integer not null,
    user_id bigint references app_user on delete cascade,
    schedule_id bigint references schedule on delete cascade,
    channel_id bigint references channel on delete cascade,
    check (num_nonnulls(user_id, schedule_id, channel_id) = 1),
    unique (step_id, position)
);

create table service (
    id bigint generated always as identity primary key,
    name text not null unique,
    policy_id bigint not null references escalation_policy on delete restrict,
    urgency text not null check (urgency in ('high', 'low', 'severity')),
    ack_timeout_seconds integer check (ack_timeout_seconds > 0),
    auto_resolve_seconds integer check (auto_resolve_seconds > 0)
);

-- key_hash is the SHA-256 of the key in hex; the key itself is shown once and not kept.
create table integration (
    id bigint generated always as identity primary key,
    service_id bigint not null references service on delete cascade,
    name text not null,
    kind text not null,
    key_hash text not null unique,
    key_prefix text not null,
    secret text,
    verify boolean not null,
    unique (service_id, name)
);

create table heartbeat (
    id bigint generated always as identity primary key,
    service_id bigint not null references service on delete cascade,
    name text not null,
    interval_seconds integer not null check (interval_seconds > 0),
    grace_seconds integer not null check (grace_seconds >= 0),
    key_hash text not null unique,
    key_prefix text not null,
    paused text,
    last_beat_at timestamptz,
    late_at timestamptz,
    unique (service_id, name)
);
create index heartbeat_late on heartbeat (late_at) where late_at is not null;

create table setting (
    name text primary key,
    value jsonb not null
);

-- Incidents. policy is the policy as it was when the incident opened: editing the policy never changes a running
-- incident. wake_at is the one deadline that sends nothing; it follows from the three that can be running.

create table incident (
    id bigint generated always as identity primary key,
    service_id bigint references service on delete set null,
    integration_id bigint references integration on delete set null,
    service_name text,
    title text not null,
    details text not null,
    severity text not null check (severity in ('critical', 'error', 'warning', 'info')),
    urgency text not null check (urgency in ('high', 'low')),
    status text not null check (status in ('TRIGGERED', 'ACKNOWLEDGED', 'RESOLVED')),
    dedup_key text,
    link text,
    alert_group jsonb,
    sanitized boolean not null,
    policy jsonb not null,
    round integer not null,
    step integer not null,
    repeats_left integer not null check (repeats_left >= 0),
    opened_at timestamptz not null,
    opened_by text not null,
    last_alert_at timestamptz not null,
    count integer not null,
    acknowledged_at timestamptz,
    acknowledged_by text,
    resolved_at timestamptz,
    resolved_by text,
    snoozed_until timestamptz,
    exhausted_at timestamptz,
    ack_timeout_seconds integer,
    ack_timeout_at timestamptz,
    auto_resolve_seconds integer,
    auto_resolve_at timestamptz,
    wake_at timestamptz generated always as (
        case when status = 'RESOLVED' then null else least(snoozed_until, ack_timeout_at, auto_resolve_at) end
    ) stored,
    check (status <> 'ACKNOWLEDGED' or acknowledged_at is not null),
    check (status <> 'TRIGGERED' or acknowledged_at is null),
    check ((status = 'RESOLVED') = (resolved_at is not null)),
    check (ack_timeout_at is null or status = 'ACKNOWLEDGED'),
    check (exhausted_at is null or status <> 'ACKNOWLEDGED')
);
create unique index incident_open on incident (service_id, dedup_key) where status <> 'RESOLVED';
create index incident_unresolved on incident (id) where status <> 'RESOLVED';
create index incident_resolved on incident (resolved_at) where resolved_at is not null;
create index incident_wake on incident (wake_at) where wake_at is not null;
create index incident_silenced on incident (service_id, dedup_key, snoozed_until) where snoozed_until is not null;

-- The timeline, append-only. No foreign key to incident: an event written by a settle must not wait for the incident.
create table incident_event (
    id bigint generated always as identity primary key,
    incident_id bigint not null,
    at timestamptz not null,
    event text not null,
    actor text,
    data jsonb not null
);
create index incident_event_incident on incident_event (incident_id, id);

-- The queue: one row is one thing to do at due_at. No foreign key to incident (many inserts would turn its row lock
-- into MultiXacts). bundle names the contact whose due rows leave as one message; null means "always alone".
create table notification_attempt (
    id bigint generated always as identity primary key,
    incident_id bigint,
    kind text not null check (kind in ('STEP', 'PAGE', 'NOTICE')),
    event text not null,
    status text not null check (status in ('PENDING', 'IN_FLIGHT', 'DELIVERED', 'FAILED', 'CANCELLED')),
    lane text not null check (lane in ('high', 'low')),
    round integer not null,
    step integer not null,
    recipient text not null,
    target text,
    user_id bigint,
    contact_method_id bigint,
    channel_id bigint,
    transport text not null,
    destination text not null,
    bundle text,
    pace_seconds integer not null,
    due_at timestamptz not null,
    first_due_at timestamptz not null,
    tries integer not null,
    max_tries integer not null,
    replays integer not null,
    claimed_at timestamptz,
    lease_owner text,
    lease_until timestamptz,
    claim_seq integer not null,
    cancel_requested boolean not null,
    recheck boolean not null,
    idempotency_key text not null,
    summary text not null,
    last_error text,
    delivered_at timestamptz,
    finished_at timestamptz,
    check ((status = 'IN_FLIGHT') = (lease_until is not null)),
    check ((status in ('DELIVERED', 'FAILED', 'CANCELLED')) = (finished_at is not null)),
    check (status <> 'DELIVERED' or delivered_at is not null),
    check (kind <> 'STEP' or status in ('PENDING', 'DELIVERED', 'CANCELLED')),
    check (kind = 'NOTICE' or incident_id is not null),
    check (not (cancel_requested and status in ('PENDING', 'FAILED'))),
    check (not recheck or status = 'FAILED')
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000
);
create index attempt_due on notification_attempt (lane, due_at, id) where status = 'PENDING' and kind <> 'STEP';
create index attempt_step_due on notification_attempt (due_at, id) where status = 'PENDING' and kind = 'STEP';
create index attempt_bundle on notification_attempt (bundle, lane, due_at, id)
    where status = 'PENDING' and bundle is not null;
create index attempt_lease on notification_attempt (lease_until) where status = 'IN_FLIGHT';
create index attempt_recheck on notification_attempt (incident_id) where recheck;
create index attempt_done on notification_attempt (finished_at, id) where status in ('DELIVERED', 'FAILED', 'CANCELLED');
create unique index attempt_once on notification_attempt (incident_id, round, step, kind, recipient)
    where kind <> 'NOTICE';
create unique index attempt_one_step on notification_attempt (incident_id) where kind = 'STEP' and status = 'PENDING';
create index attempt_incident on notification_attempt (incident_id, id);

create table notification_attempt_archive (like notification_attempt);
alter table notification_attempt_archive add primary key (id);
create index attempt_archive_incident on notification_attempt_archive (incident_id, id);
create index attempt_archive_finished on notification_attempt_archive (finished_at);

-- One row per try, written when the try ends. A claim given back leaves none.
create table attempt_try (
    attempt_id bigint not null,
    claim_seq integer not null,
    try integer not null,
    started_at timestamptz not null,
    ended_at timestamptz not null,
    outcome text not null check (outcome in ('delivered', 'retry', 'failed', 'unknown', 'cancelled')),
    error text,
    request text not null,
    answer text not null,
    primary key (attempt_id, claim_seq)
);

-- A gate per transport and host; a row exists only while something is wrong with it.
create table destination (
    name text primary key,
    failures integer not null,
    not_before timestamptz not null,
    reason text not null,
    changed_at timestamptz not null
);

-- Access. Tokens and session ids are kept as SHA-256 in hex.

create table api_token (
    id bigint generated always as identity primary key,
    name text not null unique,
    token_hash text not null unique,
    role text not null check (role in ('admin', 'responder', 'viewer')),
    created_at timestamptz not null,
    last_used_at timestamptz
);

create table session (
    session_hash text primary key,
    user_id bigint not null references app_user on delete cascade,
    created_at timestamptz not null,
    last_seen_at timestamptz not null,
    expires_at timestamptz not null
);
create index session_of_user on session (user_id);

-- One row per running engine, so that a process without one can say whether pages are going out.
create table engine_instance (
    owner text primary key,
    started_at timestamptz not null,
    last_tick_at timestamptz not null
);
