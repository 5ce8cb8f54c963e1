"""The first run, step by step: how to reach whoever set this up, a first service, an alert, and a page that arrives.

It begins with the first login and ends when that person says so; it never comes back. Everything it makes is made as
a configuration file would make it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from escalade import audit, opening, settings, tokens, users
from escalade.config import Config
from escalade.db import Tx
from escalade.errors import Conflict, Invalid, NotFound
from escalade.inbound.base import Event
from escalade.incident import Incident
from escalade.overview import AttemptView, of_incident
from escalade.transfer import stored
from escalade.transfer.adding import add, add_contact_method
from escalade.transfer.faults import Faults
from escalade.transports import TRANSPORTS, Transport, push
from escalade.users import User

SETTING = "first_steps"
# In the order they are offered: what rings first.
KINDS = ("ntfy", "email", "webhook", "push", "log")
INTEGRATION = "first"
ALERT = "My first alert"
WAIT = "5m"
ROUNDS = "2"


@dataclass(frozen=True, slots=True)
class Steps:
    """How far it is: whose first steps these are, how they are reached, and the service they made (None: not yet)."""

    user: User
    methods: tuple[str, ...]
    service: str | None


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came of the first alert: its incident (None: still waited for), the pages of it, and the time."""

    incident: Incident | None
    pages: tuple[AttemptView, ...]
    now: datetime

    @property
    def delivered(self) -> AttemptView | None:
        """The page that arrived."""
        return next((page for page in self.pages if page.status == "DELIVERED"), None)


def begin(tx: Tx, user_id: int) -> None:
    """The first person has just logged in."""
    settings.put(tx, SETTING, {"user_id": user_id, "service": None})


def find(tx: Tx) -> Steps | None:
    """How far it is, or None where it has ended, or never began."""
    kept = settings.get(tx, SETTING)
    if kept is None:
        return None
    try:
        user = users.find(tx, int(kept["user_id"]))
    except NotFound:
        return None
    methods = tuple(tx.values("contact_kinds_of", user_id=user.id))
    service = kept["service"]
    return Steps(user, methods, service if service and tx.values("service_named", name=service) else None)


def end(tx: Tx) -> None:
    """It is done, and does not come back."""
    if tx.run("remove_setting", name=SETTING):
        audit.record(tx, "first steps ended", "first steps")


def offered(config: Config) -> list[Transport]:
    """The ways to reach somebody that work as this is configured; push is switched on by the browser itself."""
    usable = {kind for kind in KINDS if kind != "email" or config.smtp_url is not None}
    return [TRANSPORTS[kind] for kind in KINDS if kind in usable and (kind != "push" or push.is_installed())]


def reach_by(tx: Tx, steps: Steps, kind: str, address: str) -> None:
    """Add this way to reach the person. Raises Invalid."""
    transport = TRANSPORTS.get(kind)
    if transport is None or kind not in KINDS or kind == "push":
        raise Invalid("Choose how you want to be reached.", "kind")
    if kind == "log":
        address = "log"
    name, number = kind, 2
    person = next(user for user in stored.load(tx).users if user.id == steps.user.id)
    taken = {method.name for method in person.contact_methods}
    while name in taken:
        name, number = f"{kind} {number}", number + 1
    try:
        add_contact_method(tx, steps.user.email, {"name": name, "kind": kind, "address": address.strip()})
    except Faults as wrong:
        raise Invalid(sentence(wrong), "address") from None


def make_service(tx: Tx, steps: Steps, name: str) -> str:
    """The first service, with a policy of its own that pages this person; the key of its integration. Raises Invalid,
    or Conflict where there is one of that name."""
    name, key = name.strip(), f"k_{tokens.new_secret()}"
    before = stored.load(tx)
    if name in {one.name for one in before.services} | {one.name for one in before.policies}:
        raise Conflict(f"There is something called {name[:80]} already; choose another name.", "name")
    policy = {"name": name, "repeat": ROUNDS, "steps": [{"targets": [f"user:{steps.user.email}"], "wait": WAIT}]}
    service = {"name": name, "policy": name, "integrations": [_integration(key)]}
    try:
        add(tx, {"policies": [policy], "services": [service]})
    except Faults as wrong:
        raise Invalid(sentence(wrong), "name") from None
    settings.put(tx, SETTING, {"user_id": steps.user.id, "service": name})
    return key


def _integration(key: str) -> Mapping[str, str]:
    return {"name": INTEGRATION, "kind": "generic", "key": key}


def new_key(tx: Tx, steps: Steps) -> str:
    """Another key, where the first was lost: it is shown once and not kept. Raises Conflict where there is no service,
    or somebody has changed its integrations meanwhile."""
    found = next((one for one in stored.load(tx).services if one.name == steps.service), None)
    if found is None or [one.name for one in found.integrations] != [INTEGRATION]:
        raise Conflict("The service is not as these steps made it; its keys are under Setup.")
    key = f"k_{tokens.new_secret()}"
    tx.run("replace_key", id=found.integrations[0].id, key_hash=tokens.digest(key), key_prefix=key[:8])
    audit.record(tx, "integration key renewed", f"{found.name}/{INTEGRATION}")
    return key


def alert(tx: Tx, steps: Steps) -> Incident:
    """Open the first incident from here, for whoever has no terminal at hand. Raises NotFound."""
    source = opening.service(tx, steps.service or "", steps.user.email)
    return opening.trigger(tx, source, Event("trigger", ALERT, severity="critical"))[0]


def arrival(tx: Tx, steps: Steps) -> Arrival:
    """What has come of the latest alert of the service."""
    incident = tx.maybe(Incident, "latest_incident_of", name=steps.service)
    pages = [] if incident is None else [view for view in of_incident(tx, incident.id) if view.kind == "PAGE"]
    return Arrival(incident, tuple(pages), tx.now)


def sentence(wrong: Faults) -> str:
    """The first fault without the path of its field, as a sentence."""
    text = wrong.faults[0].partition(": ")[2] or wrong.faults[0]
    return f"{text[:1].upper()}{text[1:]}."
