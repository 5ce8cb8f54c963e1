"""Pages by ntfy: JSON to the server's root, priority, buttons, and cutting on bytes."""

import json

import pytest
from pytest_httpserver import HTTPServer

from escalade.transports import ntfy
from escalade.transports.base import DeliveryError, Network
from tests.transports.conftest import incident, page


def sent(httpserver: HTTPServer, network: Network, **changes):
    httpserver.expect_request("/").respond_with_json({"id": "x"})
    receipt = ntfy.send(page(httpserver.url_for("/on-call"), **changes), network)
    request = httpserver.log[-1][0]
    return json.loads(request.get_data()), request, receipt


def test_a_page(httpserver: HTTPServer, network: Network):
    content, request, receipt = sent(httpserver, network)
    assert content["topic"] == "on-call"
    assert content["title"] == "[api] Disk full on web1"
    assert "/dev/sda1 is at 99 %" in content["message"]
    assert content["priority"] == 5
    assert content["click"] == "https://escalade.example/incidents/7"
    assert content["actions"] == [
        {
            "action": "http",
            "label": "Acknowledge",
            "url": "https://escalade.example/a/acknowledge-token-123",
            "method": "POST",
            "clear": True,
        },
        {"action": "view", "label": "Open", "url": "https://escalade.example/incidents/7"},
    ]
    assert "Authorization" not in request.headers
    assert receipt.note == ""


def test_a_notice_is_quieter(httpserver: HTTPServer, network: Network):
    content, _, _ = sent(httpserver, network, type="notice", event="resolved", ack_url=None)
    assert content["priority"] == 3
    assert content["title"] == "Resolved: [api] Disk full on web1"
    assert [action["label"] for action in content["actions"]] == ["Open"]


def test_a_test_about_nothing(httpserver: HTTPServer, network: Network):
    content, _, _ = sent(httpserver, network, type="test", event="test", incidents=(), ack_url=None)
    assert content["message"] != ""
    assert "click" not in content


def test_several_incidents_are_listed(httpserver: HTTPServer, network: Network):
    content, _, _ = sent(httpserver, network, incidents=(incident(), incident(id=8, title="Down")))
    assert content["title"] == "2 incidents: [api] Disk full on web1 and 1 more"
    assert "[api] Down (#8, critical, TRIGGERED)" in content["message"]


def test_a_secret_is_a_token_and_a_login_is_basic(httpserver: HTTPServer, network: Network):
    _, request, _ = sent(httpserver, network, secret="tk_abc")
    assert request.headers["Authorization"] == "Bearer tk_abc"
    ntfy.send(page(f"http://me:p%40s%2Fs@127.0.0.1:{httpserver.port}/on-call"), network)
    authorization = httpserver.log[-1][0].authorization
    assert (authorization.username, authorization.password) == ("me", "p@s/s")


def test_a_server_below_a_path(httpserver: HTTPServer, network: Network):
    httpserver.expect_request("/push/", query_string="auth=QmFzaWM").respond_with_json({})
    ntfy.send(page(httpserver.url_for("/push/on-call?auth=QmFzaWM")), network)
    assert json.loads(httpserver.log[-1][0].get_data())["topic"] == "on-call"


@pytest.mark.parametrize("character", ["x", '"', "\n.", "ä", "😀"])
def test_k068_k069_long_texts_are_cut_on_bytes(httpserver: HTTPServer, network: Network, character: str):
    long = incident(title="T" + character * 400, details=character * 20000)
    content, request, receipt = sent(httpserver, network, incidents=(long,))
    assert len(content["message"].encode()) <= 4096
    assert len(request.get_data()) <= 8192
    assert content["message"].endswith("…")
    assert content["title"].endswith("…")
    assert "T" in content["message"]
    assert receipt.note == "shortened to fit ntfy's limits"


@pytest.mark.parametrize("title", ["& < > \" ' ` * _ 😀"])
def test_k072_the_title_is_shown_exactly(httpserver: HTTPServer, network: Network, title: str):
    content, _, _ = sent(httpserver, network, incidents=(incident(title=title, details=title),))
    assert content["title"] == f"[api] {title}"
    assert content["message"].endswith(title)
    assert "markdown" not in content


@pytest.mark.parametrize(
    ("status", "code", "permanent", "limited"),
    [(401, 40101, True, False), (403, 40301, True, False), (429, 42901, False, True), (429, 42908, True, False)],
)
def test_k062_which_answers_are_final(httpserver: HTTPServer, network: Network, status, code, permanent, limited):
    httpserver.expect_request("/").respond_with_data(f'{{"code":{code},"http":{status}}}', status=status)
    with pytest.raises(DeliveryError) as caught:
        ntfy.send(page(httpserver.url_for("/on-call")), network)
    assert (caught.value.permanent, caught.value.limited) == (permanent, limited)


@pytest.mark.parametrize(
    "address", ["https://ntfy.sh", "https://ntfy.sh/", "https://ntfy.sh/a b", "https://ntfy.sh/tö", "x"]
)
def test_an_address_without_a_topic_is_a_fault(address: str, network: Network):
    assert ntfy.check_address(address) is not None
    with pytest.raises(DeliveryError) as caught:
        ntfy.send(page(address), network)
    assert caught.value.permanent


def test_k079_the_record_holds_neither_topic_nor_acknowledge_link(httpserver: HTTPServer, network: Network):
    _, _, receipt = sent(httpserver, network)
    assert "on-call" not in receipt.request
    assert "acknowledge-token-123" not in receipt.request
