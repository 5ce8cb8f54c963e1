"""Web Push: the keys of this installation, and the browsers that people switched it on in."""

import json
import logging
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from escalade import audit, sealing, settings
from escalade.config import Config, is_loopback
from escalade.db import Tx, as_json
from escalade.errors import Conflict
from escalade.transfer.adding import add_contact_method, as_told
from escalade.transports import push
from escalade.transports.addresses import push_endpoint
from escalade.transports.base import PushSender

log = logging.getLogger("escalade.subscriptions")

SETTING = "push_key"
LABEL_LIMIT = 60


def sender(tx: Tx, config: Config) -> PushSender | None:
    """In whose name this process pushes; None where the package for it is not installed, or the key cannot be read."""
    if not push.is_installed():
        return None
    try:
        return PushSender(private_key(tx), contact(config), f"{config.base_url}/")
    except Conflict as refusal:
        log.warning("%s", refusal.message)
        return None


def contact(config: Config) -> str:
    """Whom push services write to. They take no address of a machine that only itself reaches."""
    parts = urlsplit(config.base_url)
    if parts.scheme == "https" and not is_loopback((parts.hostname or "").strip("[]")):
        return f"https://{parts.hostname}"
    return f"mailto:{config.admin_email or config.mail_from}"


def private_key(tx: Tx) -> str:
    """The key that every push is signed with, made once: every subscription is bound to it, so another one would end
    them all. Raises Conflict where it is sealed under a key that this process does not have."""
    kept = settings.get(tx, SETTING)
    if kept is None:
        number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
        made = urlsafe_b64encode(number.to_bytes(32, "big")).decode().rstrip("=")
        tx.run("put_setting_once", name=SETTING, value=as_json(sealing.seal(tx.limits.sealing_keys, made)))
        kept = settings.get(tx, SETTING)
    try:
        return str(sealing.opened(tx.limits.sealing_keys, str(kept)))
    except sealing.Unreadable as why:
        raise Conflict(f"Nothing can be sent by Web Push. {why}") from None


def public_key(tx: Tx) -> str:
    """What a browser needs to subscribe."""
    number = int.from_bytes(urlsafe_b64decode(private_key(tx) + "="), "big")
    point = ec.derive_private_key(number, ec.SECP256R1()).public_key()
    return urlsafe_b64encode(point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)).decode().rstrip("=")


def subscribe(tx: Tx, email: str, address: str, label: str) -> str:
    """Push goes to this browser too; the contact method's name. A browser that is known already stays as it is. Raises
    Faults where the subscription cannot be used."""
    tx.run("lock_configuration")
    known = tx.values("push_addresses", email=email)
    endpoint = push_endpoint(address)
    if endpoint and any(push_endpoint(_opened(tx, one) or "") == endpoint for one in known):
        return ""
    taken = {method["name"] for method in as_told(tx, email).get("contact_methods", [])}
    name = free_name(label, taken)
    add_contact_method(tx, email, {"name": name, "kind": "push", "address": _plain(address)})
    return name


def _opened(tx: Tx, kept: str) -> str | None:
    try:
        return sealing.opened(tx.limits.sealing_keys, kept)
    except sealing.Unreadable:
        return None


def _plain(address: str) -> str:
    """The subscription without what is not needed to push, on one line."""
    try:
        found = json.loads(address)
        return json.dumps({"endpoint": found["endpoint"], "keys": found["keys"]})
    except (ValueError, KeyError, TypeError, RecursionError):
        return address[:1_000] or "-"


def free_name(label: str, taken: set[str]) -> str:
    """What to call it: as the browser calls itself, with a number where that is taken."""
    wanted = re.sub(r"[^A-Za-z0-9 ._-]", "", label).strip()[:LABEL_LIMIT] or "browser"
    name, number = f"push {wanted}", 2
    while name in taken:
        name, number = f"push {wanted} {number}", number + 1
    return name


def unsubscribe(tx: Tx, user_id: int, method_id: int) -> bool:
    """Push goes to this browser of the person's no more; whether it did."""
    gone = tx.maybe(dict, "drop_subscription", user_id=user_id, id=method_id)
    if gone is not None:
        audit.record(tx, "contact method removed", f"{gone['email']}/{gone['name']}", {"kind": "push"}, None)
    return gone is not None


def drop_gone(tx: Tx, attempt_ids: Sequence[int]) -> list[str]:
    """Remove the subscriptions that these failed attempts found gone; whose they were. The attempts say why."""
    gone = tx.many(dict, "drop_gone_subscriptions", ids=list(attempt_ids))
    for row in gone:
        audit.record(tx, "contact method removed", f"{row['email']}/{row['name']}", {"kind": "push"}, None)
    return [f"{row['email']}/{row['name']}" for row in gone]
