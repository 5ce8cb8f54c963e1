-- Who changed what: one row an action, written in its transaction. `who` is an e-mail, token:NAME or command-line;
-- `address` where the request came from. Secrets in before and after are masked before they come here.
create table audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    who text not null,
    address text,
    action text not null,
    subject text not null,
    before jsonb,
    after jsonb
);
create index audit_at on audit (at);

-- Nobody rewrites it: rows only come, and what is old goes with the housekeeping, which says so.
create function audit_is_append_only() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('escalade.pruning', true) = 'on' then
        return old;
    end if;
    raise exception 'the audit is append-only';
end
$$;
create trigger audit_append_only before update or delete on audit
    for each row execute function audit_is_append_only();
create trigger audit_no_truncate before truncate on audit
    for each statement execute function audit_is_append_only();

-- Links by which somebody sets a password: an invitation or a reset. Kept as SHA-256, used once.
create table login_link (
    token_hash text primary key,
    user_id bigint not null references app_user on delete cascade,
    kind text not null check (kind in ('invite', 'reset')),
    created_by text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null
);
create index login_link_of_user on login_link (user_id);

-- A token may end by itself; null: never.
alter table api_token add column expires_at timestamptz, add column created_by text;

-- So that people recognise their own sessions.
alter table session add column address text, add column agent text;
