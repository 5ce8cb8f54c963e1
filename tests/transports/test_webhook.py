"""Pages by webhook: the body and the headers of CONTRACT.md, signed as Standard Webhooks."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from pytest_httpserver import HTTPServer

from escalade.transports import webhook
from escalade.transports.base import AttemptRef, DeliveryError, Network
from tests.transports.conftest import incident, page

# The example of the Standard Webhooks specification and its libraries.
VECTOR_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
VECTOR_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
VECTOR_AT = 1614265330
VECTOR_BODY = b'{"test": 2432232314}'
VECTOR_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def sent(httpserver: HTTPServer, network: Network, **changes):
    httpserver.expect_request("/alice").respond_with_data("ok")
    receipt = webhook.send(page(httpserver.url_for("/alice"), **changes), network)
    request = httpserver.log[-1][0]
    return request.headers, request.get_data(), receipt


def test_the_body_is_as_the_contract_says(httpserver: HTTPServer, network: Network):
    _, body, receipt = sent(httpserver, network, attempts=(AttemptRef(31, 2), AttemptRef(32, 1)))
    assert json.loads(body) == {
        "type": "page",
        "event": "triggered",
        "attempt": {"id": 31, "try": 2},
        "attempts": [{"id": 31, "try": 2}, {"id": 32, "try": 1}],
        "user": "alice@example.com",
        "incidents": [
            {
                "id": 7,
                "title": "Disk full on web1",
                "status": "TRIGGERED",
                "severity": "critical",
                "service": "api",
                "dedup_key": "disk-web1",
                "url": "https://escalade.example/incidents/7",
                "link": "https://grafana.example/d/1",
            }
        ],
        "ack_url": "https://escalade.example/a/acknowledge-token-123",
    }
    assert receipt.answer == "200 ok"


def test_the_headers_without_a_secret(httpserver: HTTPServer, network: Network):
    before = int(time.time())
    headers, body, _ = sent(httpserver, network)
    assert headers["Idempotency-Key"] == headers["webhook-id"] == "att-31-0"
    assert before <= int(headers["webhook-timestamp"]) <= time.time()
    assert "webhook-signature" not in headers
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"].startswith("Escalade/")
    assert body.isascii()


def test_the_signature_matches_the_published_vector():
    assert webhook.sign(VECTOR_ID, VECTOR_AT, VECTOR_BODY, VECTOR_SECRET) == VECTOR_SIGNATURE


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        ("whsec_" + base64.b64encode(b"k" * 24).decode(), b"k" * 24),
        ("whsec_" + base64.b64encode(b"k" * 25).decode().rstrip("="), b"k" * 25),
        ("plain sécret", "plain sécret".encode()),
    ],
)
def test_the_signature_is_over_the_bytes_sent(httpserver: HTTPServer, network: Network, secret: str, key: bytes):
    headers, body, _ = sent(httpserver, network, secret=secret, incidents=(incident(title="Größe <&> 😀"),))
    signed = f"att-31-0.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_a_secret_that_cannot_be_decoded_is_a_final_fault(network: Network):
    with pytest.raises(DeliveryError) as caught:
        webhook.send(page("http://127.0.0.1:1/", secret="whsec_!!"), network)
    assert caught.value.permanent
    assert "!!" not in caught.value.message
    assert webhook.check_secret("whsec_!!") == caught.value.message
    assert webhook.check_secret("anything else") is None


@pytest.mark.parametrize("title", ["& < > \" ' ` * _ 😀", "two\r\nlines: X-Evil: 1", "NUL\x00 and \x1b[31m", "\u2028"])
def test_k071_k072_titles_arrive_exactly(httpserver: HTTPServer, network: Network, title: str):
    headers, body, _ = sent(httpserver, network, incidents=(incident(title=title),))
    assert json.loads(body)["incidents"][0]["title"] == title
    assert "X-Evil" not in headers


def test_a_lone_surrogate_is_replaced(httpserver: HTTPServer, network: Network):
    _, body, _ = sent(httpserver, network, incidents=(incident(title="a\ud800b"),))
    assert json.loads(body)["incidents"][0]["title"] == "a\ufffdb"


def test_a_message_to_a_channel_about_nothing(httpserver: HTTPServer, network: Network):
    _, body, _ = sent(httpserver, network, type="test", event="test", user=None, incidents=(), ack_url=None)
    assert json.loads(body)["incidents"] == []
    assert json.loads(body)["user"] is None


def test_k079_the_record_holds_no_secret_and_no_acknowledge_link(httpserver: HTTPServer, network: Network):
    _, _, receipt = sent(httpserver, network, secret="a shared secret")
    assert receipt.request.startswith(f"POST http://localhost:{httpserver.port}/... ")
    assert "Disk full on web1" in receipt.request
    assert "acknowledge-token-123" not in receipt.request
    assert "a shared secret" not in receipt.request
