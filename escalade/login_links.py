"""Links by which somebody sets a password: an invitation to a person who cannot log in yet, or a reset.

A token is 32 random bytes, of which the database has the SHA-256. It works once, for a week or an hour; a new password
ends all others of the same person. What somebody asks for who is not logged in is answered the same, and as fast,
whether there is such an account: all that depends on it happens after the answer.
"""

import logging
import threading
from dataclasses import dataclass

from escalade import audit, mailing, throttle, users
from escalade.db import Begin, Tx
from escalade.errors import Conflict, Invalid, NotFound
from escalade.tokens import digest, new_secret
from escalade.transports.base import Network
from escalade.users import User

log = logging.getLogger("escalade.login_links")

SECONDS = {"invite": 7 * 86400, "reset": 3600}
RESETS_PER_ADDRESS = 20
RESETS_PER_ACCOUNT = 5
TOKENS_PER_ADDRESS = 60
OVER = "This link is no longer valid: it was used, or its time is over. Ask for a new one."
NO_MAIL = "This installation sends no mail: ask an admin for a link."


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose link it is."""

    id: int
    email: str
    name: str
    role: str


@dataclass(frozen=True, slots=True)
class Link:
    """A new link: `kind` is invite or reset, `mailed` whether a mail with it is on its way."""

    kind: str
    email: str
    url: str
    mailed: bool = False


def create(tx: Tx, person: User, base_url: str) -> Link:
    """A new link for a person: an invitation while they cannot log in, else a reset."""
    kind = "reset" if person.has_password else "invite"
    token = new_secret()
    tx.run("forget_login_links", now=tx.now)
    values = {"token_hash": digest(token), "user_id": person.id, "kind": kind, "created_by": audit.who()}
    tx.run("add_login_link", now=tx.now, seconds=SECONDS[kind], **values)
    audit.record(tx, "invitation made" if kind == "invite" else "reset link made", person.email)
    return Link(kind, person.email, f"{base_url}/{kind}/{token}")


def find(tx: Tx, kind: str, token: str) -> Owner:
    """Whose link this is. Raises NotFound."""
    found = tx.maybe(Owner, "login_link", token_hash=digest(token), kind=kind, now=tx.now)
    if found is None:
        raise NotFound(OVER)
    return found


def use(tx: Tx, kind: str, token: str, password: str) -> User:
    """Set the password of whoever the link belongs to. Raises NotFound, or Invalid for the password, which leaves the
    link as it is."""
    user_id = tx.value("take_login_link", token_hash=digest(token), kind=kind, now=tx.now)
    if user_id is None:
        raise NotFound(OVER)
    person = users.find(tx, user_id)
    with audit.acting(person.email, audit.address()):
        audit.record(tx, f"{kind} link used", person.email)
        users.set_password(tx, user_id, password)
    return person


def hold_back(begin: Begin, address: str) -> None:
    """One more look at a link from this address. Raises TooMany."""
    throttle.take(begin, "link", (throttle.address(address), TOKENS_PER_ADDRESS))


def request_reset(begin: Begin, network: Network, base_url: str, email: str, address: str) -> threading.Thread:
    """Mail a reset link to this account, if there is one that can log in; the thread that does it. Raises Invalid,
    TooMany, or Conflict where no mail can be sent."""
    if not network.smtp_url:
        raise Conflict(NO_MAIL)
    if not email.strip() or len(email) > 1_000:
        raise Invalid("Give the e-mail that you log in with.", "email")
    throttle.take(
        begin,
        "reset",
        (throttle.address(address), RESETS_PER_ADDRESS),
        (throttle.account(email), RESETS_PER_ACCOUNT),
    )
    thread = threading.Thread(target=_reset, args=(begin, network, base_url, email, address), daemon=True)
    thread.start()
    return thread


def _reset(begin: Begin, network: Network, base_url: str, email: str, address: str) -> None:
    try:
        with begin() as tx, audit.acting("somebody", address):
            person = users.by_email(tx, email)
            link = create(tx, person, base_url) if person is not None and person.has_password else None
        if link is not None:
            mailing.post(network, *letter(link))
    except Exception:
        # Nobody waits for this: whoever asked has had the same answer as everybody, and may ask again.
        log.exception("a reset link could not be made")


def mailed(network: Network, link: Link) -> Link:
    """The link, on its way to its person where mail can be sent."""
    if not network.smtp_url:
        return link
    mailing.post_later(network, *letter(link))
    return Link(link.kind, link.email, link.url, mailed=True)


def letter(link: Link) -> tuple[str, str, str]:
    """To whom, the subject and the text of the mail with a link."""
    if link.kind == "invite":
        why = "You have been invited to Escalade. Set a password within a week:"
        return link.email, "Your invitation to Escalade", f"{why}\n\n{link.url}\n"
    why = "Somebody asked for a new password for this account. Set it within an hour:"
    nothing = "If it was not you, do nothing: the old password still works."
    return link.email, "A new password for Escalade", f"{why}\n\n{link.url}\n\n{nothing}\n"
