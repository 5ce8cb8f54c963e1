"""Whether messages can get out: what each transport needs, and which addresses may be contacted."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from escalade import sealing
from escalade.checks.finding import Finding, fault, listed, ok, warning
from escalade.config import Config
from escalade.db import Tx
from escalade.transports import TRANSPORTS, DeliveryError, Network, push
from escalade.transports.addresses import WebAddress, parse_web, push_endpoint
from escalade.transports.deadline import Deadline
from escalade.transports.peers import allowed, find
from escalade.transports.webhook import check_secret

# For all names together: a name server that does not answer must not hold the doctor up.
LOOK_UP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Contact:
    """A contact method or a channel; `label` is as people know it."""

    label: str
    kind: str
    address: str
    secret: str | None


def transports(tx: Tx, config: Config) -> Iterator[Finding]:
    """Whether each kind that is used has what it needs, and each address can be contacted."""
    contacts = [_opened(contact, config) for contact in tx.many(Contact, "doctor_contacts")]
    contacts = [contact for contact in contacts if not _is_sealed(contact)]
    found = [*_kinds(contacts, config), *_addresses(contacts), *_secrets(contacts), *_hosts(contacts, config.network())]
    yield from found
    if not found:
        kinds = sorted({contact.kind for contact in contacts})
        yield ok("transports", f"{', '.join(kinds)}: ready" if kinds else "none is used yet")


def _opened(contact: Contact, config: Config) -> Contact:
    """With its secrets as they were given; one that cannot be read stays, and another check tells of it."""
    keys = config.sealing_keys
    try:
        address, secret = sealing.opened(keys, contact.address), sealing.opened(keys, contact.secret)
        return replace(contact, address=address or "", secret=secret)
    except sealing.Unreadable:
        return contact


def _is_sealed(contact: Contact) -> bool:
    return sealing.is_sealed(contact.address) or sealing.is_sealed(contact.secret or "")


def _kinds(contacts: Iterable[Contact], config: Config) -> Iterator[Finding]:
    by_kind: dict[str, list[str]] = defaultdict(list)
    for contact in contacts:
        by_kind[contact.kind].append(contact.label)
    for kind, labels in sorted(by_kind.items()):
        if kind not in TRANSPORTS:
            yield fault(
                "transports",
                f"this version knows no {kind}, which {listed(labels)} uses; update it, or change the kind",
            )
        elif kind == "email" and config.smtp_url is None:
            yield fault("transports", f"no mail can be sent, and {listed(labels)} wants it; set SMTP_URL")
        elif kind == "push" and not push.is_installed():
            yield fault("transports", f"{listed(labels)}: {push.MISSING}")


def _addresses(contacts: Iterable[Contact]) -> Iterator[Finding]:
    for contact in contacts:
        transport = TRANSPORTS.get(contact.kind)
        missing = contact.kind == "push" and not push.is_installed()  # said once, of all of them
        wrong = transport.check_address(contact.address) if transport and not missing else None
        if wrong:
            yield fault("transports", f"{contact.label}: {wrong.rstrip('.')}; correct its address")


def _secrets(contacts: Iterable[Contact]) -> Iterator[Finding]:
    """A webhook's secret that cannot sign fails every page for good."""
    for contact in contacts:
        wrong = check_secret(contact.secret) if contact.kind == "webhook" and contact.secret else None
        if wrong:
            yield fault("transports", f"{contact.label}: {wrong.rstrip('.')}; correct its secret")


def _hosts(contacts: Iterable[Contact], network: Network) -> Iterator[Finding]:
    """Each host once: whether its name can be looked up, and whether it may be contacted."""
    by_host: dict[str, tuple[WebAddress, list[str]]] = {}
    for contact in contacts:
        if (web := _web(contact)) is not None:
            by_host.setdefault(web.host, (web, []))[1].append(contact.label)
    deadline = Deadline(LOOK_UP_SECONDS)
    for web, labels in by_host.values():
        try:
            allowed(find(web.host, web.shown, deadline), web.shown, network)
        except DeliveryError as error:
            text = f"{listed(labels)}: {error.message.rstrip('.')}"
            yield fault("transports", text) if error.permanent else warning("transports", f"{text}; check its address")


def _web(contact: Contact) -> WebAddress | None:
    """Where the address leads, for kinds that name their host in it."""
    try:
        if contact.kind == "push":
            return parse_web(push_endpoint(contact.address) or "")
        return parse_web(contact.address) if contact.kind in TRANSPORTS and contact.kind != "log" else None
    except ValueError:
        return None
