-- A contact with a pace hears one message at a time, and a failing destination is tried once at a time, by all
-- processes together: whoever claims takes the turn, which ends with the result, or with the lease of one that died.
create table contact_turn (
    bundle text primary key,
    owner text not null,
    until timestamptz not null
) with (fillfactor = 50);

alter table destination add column turn_owner text, add column turn_until timestamptz;
