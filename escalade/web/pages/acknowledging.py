"""The acknowledge link of a message: no login, no cookie, no script. GET shows, only the button's POST acts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flask import Blueprint, Response, make_response, render_template, request

from escalade import incidents
from escalade.db import Tx
from escalade.errors import Conflict, NotFound
from escalade.incidents import Answer
from escalade.tokens import AckLink, Altered, Expired
from escalade.web.access import public
from escalade.web.context import context
from escalade.web.pages import words

pages = Blueprint("acknowledge_link", __name__)

SHOWN = 20
ALTERED = "This link is not one that Escalade made, or it has been changed on its way."
EXPIRED = "This link is older than a day. Log in to acknowledge."
GONE = "Whoever this link was sent to is no longer paged, so it acknowledges nothing any more."


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whom the link was sent to; `actor` is an e-mail or channel:NAME."""

    actor: str
    name: str
    timezone: str

    def is_on(self, item: "Listed") -> bool:
        """Whether this person has acknowledged it; a channel is many people."""
        return item.status == "ACKNOWLEDGED" and item.acknowledged_by == self.actor and ":" not in self.actor


@dataclass(frozen=True, slots=True)
class Listed:
    """What the page says of one incident: no more than the message did, and its state."""

    id: int
    service_name: str | None
    title: str
    severity: str
    status: str
    opened_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    resolved_at: datetime | None
    resolved_by: str | None


@dataclass(frozen=True, slots=True)
class Sight:
    """The incidents of a link as they are now; those that still need somebody come first."""

    listed: list[Listed]
    now: datetime

    @property
    def waiting(self) -> int:
        """How many still need somebody."""
        return sum(item.status == "TRIGGERED" for item in self.listed)

    @property
    def all_resolved(self) -> bool:
        """Whether nothing is left to acknowledge."""
        return all(item.status == "RESOLVED" for item in self.listed)

    def first(self, recipient: Recipient) -> Listed | None:
        """An incident that somebody is on already, somebody else if there is one."""
        taken = [item for item in self.listed if item.status == "ACKNOWLEDGED"]
        return min(taken, key=recipient.is_on, default=None)


@pages.route("/a/<token>", methods=["GET", "POST"])
@public
def acknowledge_link(token: str) -> Response:
    """Show the incidents of the message; a POST acknowledges those that still need somebody."""
    try:
        link = context().signer.read(token)
    except Expired:
        return refused(410, EXPIRED)
    except Altered:
        return refused(403, ALTERED)
    with context().db.read() as tx:
        recipient = tx.maybe(Recipient, "link_recipient", user_id=link.user_id, channel_id=link.channel_id)
        sight = look(tx, link)
    if recipient is None:
        return refused(403, GONE)
    words.use_zone(recipient.timezone)
    if request.method != "POST":
        return shown(200, recipient, sight)
    return act(link, recipient, sight)


def look(tx: Tx, link: AckLink) -> Sight:
    """The incidents of the link that still exist."""
    return Sight(tx.many(Listed, "incidents_of_link", ids=list(link.incident_ids)), tx.now)


def act(link: AckLink, recipient: Recipient, sight: Sight) -> Response:
    """Acknowledge what is still TRIGGERED, and say what that did."""
    waiting = [item.id for item in sight.listed if item.status == "TRIGGERED"]
    answers = [acknowledge(incident_id, recipient.actor) for incident_id in waiting]
    done = [answer for answer in answers if answer is not None and answer.changed]
    with context().db.read() as tx:
        after = look(tx, link)
    return shown(409 if after.all_resolved else 200, recipient, after, acted=True, done=done)


def acknowledge(incident_id: int, actor: str) -> Answer | None:
    """One incident, one transaction; None where it has been resolved in the meantime."""
    try:
        with context().db.begin() as tx:
            return incidents.acknowledge(tx, incident_id, actor)
    except (Conflict, NotFound):
        return None


def shown(
    status: int, recipient: Recipient, sight: Sight, acted: bool = False, done: Sequence[Answer] = ()
) -> Response:
    """The page with the incidents' states."""
    page = render_template(
        "ack/show.html",
        recipient=recipient,
        sight=sight,
        first=sight.first(recipient),
        listed=sight.listed[:SHOWN],
        more=max(0, len(sight.listed) - SHOWN),
        acted=acted,
        done=len(done),
        stopped=words.stopped_by(done),
    )
    return make_response(page, status)


def refused(status: int, why: str) -> Response:
    """The link does nothing, and why."""
    return make_response(render_template("ack/refused.html", why=why), status)
