"""Web Push: what a push service gets, whether the browser can read it, and whose signature it carries."""

import base64
import json
import os
import time
from dataclasses import dataclass, replace
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pytest_httpserver import HTTPServer

from escalade.transports import TRANSPORTS, mask, push
from escalade.transports.base import DeliveryError, Network, PushSender
from tests.transports.conftest import incident, page

SENDER = PushSender("c2VjcmV0LWtleS1mb3ItdGVzdHMtMzItYnl0ZXMuLi4", "https://pager.example", "https://pager.example/")


def b64(data: bytes) -> str:
    """Base64url, as browsers write it."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unb64(text: str) -> bytes:
    """And back."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Browser:
    """The other end: it has the private key and reads what was pushed, by RFC 8291 alone."""

    key: ec.EllipticCurvePrivateKey
    auth: bytes

    @property
    def point(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def subscription(self, endpoint: str) -> str:
        return json.dumps({"endpoint": endpoint, "keys": {"p256dh": b64(self.point), "auth": b64(self.auth)}})

    def read(self, body: bytes) -> dict[str, Any]:
        """Take the header of RFC 8188 apart, derive the keys of RFC 8291, and decrypt the one record."""
        salt, size, length = body[:16], int.from_bytes(body[16:20]), body[20]
        point, record = body[21 : 21 + length], body[21 + length :]
        assert size >= len(record)
        sender = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        secret = HKDF(hashes.SHA256(), 32, self.auth, b"WebPush: info\0" + self.point + point).derive(
            self.key.exchange(ec.ECDH(), sender)
        )
        key = HKDF(hashes.SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
        nonce = HKDF(hashes.SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
        plain = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert plain[-1:] == b"\x02"
        return json.loads(plain[:-1])


@pytest.fixture
def browser() -> Browser:
    return Browser(ec.generate_private_key(ec.SECP256R1()), os.urandom(16))


@pytest.fixture
def sending(network: Network) -> Network:
    return replace(network, push=SENDER)


def pushed(httpserver: HTTPServer, browser: Browser, network: Network, status: int = 201, **changes: Any):
    httpserver.expect_request("/push/subscription-1").respond_with_data("", status=status)
    receipt = push.send(page(browser.subscription(httpserver.url_for("/push/subscription-1")), **changes), network)
    request = httpserver.log[-1][0]
    return browser.read(request.get_data()), request, receipt


def test_the_browser_can_read_a_page_in_the_declarative_shape(
    httpserver: HTTPServer, browser: Browser, sending: Network
):
    content, request, _ = pushed(httpserver, browser, sending)
    assert content["web_push"] == 8030
    notification = content["notification"]
    assert notification["title"] == "[api] Disk full on web1"
    assert "/dev/sda1 is at 99 %" in notification["body"]
    assert notification["navigate"] == "https://escalade.example/incidents/7"
    ack = "https://escalade.example/a/acknowledge-token-123"
    assert notification["actions"] == [{"action": "acknowledge", "title": "Acknowledge", "navigate": ack}]
    assert notification["requireInteraction"] is True
    assert request.headers["Urgency"] == "high" and int(request.headers["TTL"]) == 86400
    assert request.headers["Content-Encoding"] == "aes128gcm"
    assert len(request.headers["Topic"]) <= 32 and request.headers["Topic"] == notification["tag"]


def test_a_push_is_signed_for_its_push_service_alone(httpserver: HTTPServer, browser: Browser, sending: Network):
    _, request, _ = pushed(httpserver, browser, sending)
    scheme, _, rest = request.headers["Authorization"].partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    signed, signature = parts["t"].rsplit(".", 1)
    head, claims = (json.loads(unb64(part)) for part in signed.split("."))
    assert scheme == "vapid" and head["alg"] == "ES256"
    assert claims["aud"] == httpserver.url_for("").rstrip("/") and claims["sub"] == "https://pager.example"
    assert time.time() < claims["exp"] <= time.time() + 24 * 3600
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unb64(parts["k"]))
    private = ec.derive_private_key(int.from_bytes(unb64(SENDER.private)), ec.SECP256R1())
    assert key == private.public_key()
    raw = unb64(signature)
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    key.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        key.verify(der, signed.replace(".", "x.", 1).encode(), ec.ECDSA(hashes.SHA256()))


def test_another_browser_cannot_read_it(httpserver: HTTPServer, browser: Browser, sending: Network):
    pushed(httpserver, browser, sending)
    other = Browser(ec.generate_private_key(ec.SECP256R1()), browser.auth)
    with pytest.raises(InvalidTag):
        other.read(httpserver.log[-1][0].get_data())


def test_a_notice_and_a_test_are_quieter(httpserver: HTTPServer, browser: Browser, sending: Network):
    content, request, _ = pushed(httpserver, browser, sending, type="notice", event="resolved", ack_url=None)
    assert request.headers["Urgency"] == "normal" and "actions" not in content["notification"]
    content, request, _ = pushed(httpserver, browser, sending, type="test", event="test", incidents=(), ack_url=None)
    assert content["notification"]["navigate"] == "https://pager.example/" and "Topic" not in request.headers


@pytest.mark.parametrize("character", ["x", '"', "\n.", "ä", "😀"])
def test_k068_a_push_fits_what_every_push_service_takes(
    httpserver: HTTPServer, browser: Browser, sending: Network, character: str
):
    long = incident(title="T" + character * 900, details=character * 20_000)
    link = "https://escalade.example/a/" + "x" * 1_900
    content, request, receipt = pushed(httpserver, browser, sending, incidents=(long,) * 3, ack_url=link)
    assert len(request.get_data()) <= 4096
    assert content["notification"]["title"].endswith("…")
    assert content["notification"]["actions"][0]["navigate"] == link
    assert receipt.note == "shortened to fit a push message"


def test_a_link_that_is_too_long_is_left_out(httpserver: HTTPServer, browser: Browser, sending: Network):
    content, request, _ = pushed(httpserver, browser, sending, ack_url="https://escalade.example/a/" + "x" * 4_000)
    assert "actions" not in content["notification"] and len(request.get_data()) <= 4096


@pytest.mark.parametrize("status", [404, 410])
def test_a_subscription_that_is_gone_fails_for_good_and_says_so(
    httpserver: HTTPServer, browser: Browser, sending: Network, status: int
):
    with pytest.raises(DeliveryError, match="given this subscription up, so it was removed") as caught:
        pushed(httpserver, browser, sending, status=status)
    assert caught.value.permanent and caught.value.answer.startswith(str(status))


@pytest.mark.parametrize(
    ("status", "permanent", "limited"),
    [(403, True, False), (413, True, False), (500, False, False), (429, False, True)],
)
def test_k062_which_answers_are_final(
    httpserver: HTTPServer, browser: Browser, sending: Network, status: int, permanent: bool, limited: bool
):
    with pytest.raises(DeliveryError) as caught:
        pushed(httpserver, browser, sending, status=status)
    assert (caught.value.permanent, caught.value.limited) == (permanent, limited)


def test_k079_the_record_says_what_was_pushed_without_its_secrets(
    httpserver: HTTPServer, browser: Browser, sending: Network
):
    _, _, receipt = pushed(httpserver, browser, sending)
    assert "Disk full on web1" in receipt.request
    for secret in ("subscription-1", "acknowledge-token-123", b64(browser.auth), b64(browser.point)):
        assert secret not in receipt.request
    assert mask("push", browser.subscription("https://push.example/secret-1")) == "https://push.example/..."


def test_k080_a_private_address_is_refused(browser: Browser, sending: Network):
    guarded = replace(sending, allow_private=())
    with pytest.raises(DeliveryError, match="not on the public internet") as caught:
        push.send(page(browser.subscription("https://10.0.0.1/x")), guarded)
    assert caught.value.permanent


KEYS = {"p256dh": b64(b"\x04" + b"x" * 64), "auth": b64(b"x" * 16)}


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://push.example/x",
        "[]",
        '{"endpoint": 3}',
        "[" * 100_000,
        json.dumps({"endpoint": "https://push.example/x"}),
        json.dumps({"endpoint": "http://push.example/x", "keys": KEYS}),
        json.dumps({"endpoint": "file:///etc/passwd", "keys": KEYS}),
        json.dumps({"endpoint": "https://push.example/x", "keys": KEYS | {"auth": "short"}}),
        json.dumps({"endpoint": "https://push.example/x", "keys": KEYS | {"p256dh": "A" * 87}}),
        json.dumps({"endpoint": "https://push.example/x", "keys": KEYS | {"p256dh": "ü"}}),
    ],
)
def test_what_is_no_subscription_is_refused(address: str, sending: Network):
    assert TRANSPORTS["push"].check_address(address) is not None
    assert TRANSPORTS["push"].destination(address).startswith("push")
    with pytest.raises(DeliveryError) as caught:
        push.send(page(address), sending)
    assert caught.value.permanent


def test_a_key_that_is_no_point_of_the_curve_fails_for_good(sending: Network):
    address = json.dumps({"endpoint": "https://127.0.0.1/x", "keys": KEYS})
    with pytest.raises(DeliveryError) as caught:
        push.send(page(address), sending)
    assert caught.value.permanent


def test_without_the_package_the_kind_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, browser: Browser, sending: Network
):
    monkeypatch.setattr(push, "is_installed", lambda: False)
    address = browser.subscription("https://push.example/x")
    assert (
        push.check_address(address)
        == "Web Push needs a package that is not installed: python -m pip install pywebpush."
    )
    with pytest.raises(DeliveryError, match="pip install pywebpush") as caught:
        push.send(page(address), sending)
    assert caught.value.permanent


def test_without_keys_a_page_fails_for_good(browser: Browser, network: Network):
    with pytest.raises(DeliveryError, match="no keys") as caught:
        push.send(page(browser.subscription("https://push.example/x")), network)
    assert caught.value.permanent


def test_a_browsers_gate_is_its_push_service(browser: Browser):
    assert TRANSPORTS["push"].destination(browser.subscription("https://fcm.example/a")) == "push:fcm.example:443"
