-- name: add_audit!
-- Who changed what, in the transaction that did it.
insert into audit (at, who, address, action, subject, before, after)
values (:now, :who, :address, :action, :subject, :before, :after);

-- name: audit_page
-- What was changed, the newest first.
select id, at, who, address, action, subject, before, after
from audit
where :before_id::bigint is null or id < :before_id::bigint
order by id desc
limit :n;

-- name: allow_pruning!
-- For this transaction alone: what is old may leave the audit.
select set_config('escalade.pruning', 'on', true);

-- name: prune_audit!
-- Some of what was changed long ago.
delete from audit
where id = any(array(select id from audit where at < :before order by at limit :n for update skip locked));
