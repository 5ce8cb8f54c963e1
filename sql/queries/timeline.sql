-- name: record_event!
-- Appends to the timeline, in the transaction of the change itself.
insert into incident_event (incident_id, at, event, actor, data)
values (:incident_id, :now, :event, :actor, :data);

-- name: events_of_incident
-- The timeline of one incident, oldest first. Transitions hold the incident, so their ids are in time order; the
-- result of a send does not, and may be written a moment after a transition that came later.
select id, at, event, actor, data from incident_event where incident_id = :incident_id order by at, id;
