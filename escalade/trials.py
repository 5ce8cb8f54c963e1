"""A test page: a message to one contact method or channel, sent by the engine like any other, so that what it shows is
what a page would meet."""

from dataclasses import dataclass

from escalade import audit
from escalade.db import Tx
from escalade.errors import NotFound
from escalade.transports import TRANSPORTS


@dataclass(frozen=True, slots=True)
class Contact:
    """Whom a test can be sent to: a person's contact method (`user_id` is whose), or a channel (then it is None)."""

    id: int
    kind: str
    name: str
    owner: str
    user_id: int | None
    verified: bool

    @property
    def loud(self) -> bool:
        """Whether it can wake somebody up whose phone is silent."""
        transport = TRANSPORTS.get(self.kind)
        return transport is not None and transport.loud

    @property
    def label(self) -> str:
        """What kind of thing it is, for people."""
        transport = TRANSPORTS.get(self.kind)
        return transport.label if transport is not None else self.kind


def contacts(tx: Tx) -> list[Contact]:
    """Every contact method, by person, then every channel."""
    return tx.many(Contact, "contacts_to_test")


def contact_method(tx: Tx, method_id: int) -> Contact:
    """One contact method. Raises NotFound."""
    return _found([one for one in contacts(tx) if one.id == method_id and one.user_id is not None])


def channel(tx: Tx, channel_id: int) -> Contact:
    """One channel. Raises NotFound."""
    return _found([one for one in contacts(tx) if one.id == channel_id and one.user_id is None])


def _found(contacts: list[Contact]) -> Contact:
    if not contacts:
        raise NotFound("There is no such contact method or channel any more.")
    return contacts[0]


def begin(tx: Tx, to: Contact) -> int:
    """Send a test; its attempt's id. While one is under way to the same contact there is no second one, however often
    somebody presses the button. Raises NotFound."""
    method_id, channel_id = (to.id, None) if to.user_id is not None else (None, to.id)
    # The contact's row is held, so that two who press at once get one test.
    if tx.value("hold_contact", method_id=method_id, channel_id=channel_id) is None:
        raise NotFound("There is no such contact method or channel any more.")
    under_way = tx.value("test_under_way", method_id=method_id, channel_id=channel_id)
    if under_way is not None:
        return int(under_way)
    attempt_id = tx.value(
        "insert_test", method_id=method_id, channel_id=channel_id, now=tx.now, max_tries=tx.limits.max_tries
    )
    audit.record(tx, "test page sent", f"{to.owner}/{to.name}", None, {"attempt": str(attempt_id)})
    tx.ring()
    return int(attempt_id)
