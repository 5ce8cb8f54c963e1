"""Pages into Slack: exact text, no mentions, within the limits, with an Acknowledge button."""

import html
import json

import pytest
from pytest_httpserver import HTTPServer

from escalade.transports import slack
from escalade.transports.base import DeliveryError, Network
from tests.transports.conftest import incident, page


def sent(httpserver: HTTPServer, network: Network, **changes):
    httpserver.expect_request("/services/T0/B0/x").respond_with_data("ok")
    receipt = slack.send(page(httpserver.url_for("/services/T0/B0/x"), **changes), network)
    return json.loads(httpserver.log[-1][0].get_data()), receipt


def texts(content):
    """Every text of the message: the notification's, the blocks' and the buttons'."""
    found = [content["text"]]
    for block in content["blocks"]:
        found += [block["text"]["text"]] if "text" in block else []
        found += [element["text"]["text"] for element in block.get("elements", [])]
    return found


def buttons(content):
    return {
        element["text"]["text"]: element["url"]
        for block in content["blocks"]
        for element in [*block.get("elements", []), *([block["accessory"]] if "accessory" in block else [])]
    }


def test_a_page_with_its_buttons(httpserver: HTTPServer, network: Network):
    content, receipt = sent(httpserver, network)
    assert content["text"] == "[api] Disk full on web1"
    assert content["unfurl_links"] is False and content["unfurl_media"] is False
    assert buttons(content) == {
        "Acknowledge": "https://escalade.example/a/acknowledge-token-123",
        "Open #7": "https://escalade.example/incidents/7",
        "Open the alert": "https://grafana.example/d/1",
    }
    assert "/dev/sda1 is at 99 %" in texts(content)
    assert receipt.note == ""


def test_a_notice_has_no_acknowledge_button(httpserver: HTTPServer, network: Network):
    content, _ = sent(
        httpserver, network, type="notice", event="acknowledged", ack_url=None, summary="Bob acknowledged #7."
    )
    assert content["text"] == "Acknowledged: [api] Disk full on web1"
    assert "Acknowledge" not in buttons(content)
    assert "Bob acknowledged #7." in texts(content)


def test_a_test_message_about_nothing(httpserver: HTTPServer, network: Network):
    content, _ = sent(httpserver, network, type="test", event="test", incidents=(), ack_url=None)
    assert content["text"] == "Test message from Escalade"
    assert buttons(content) == {}


@pytest.mark.parametrize("title", ["& < > \" ' ` * _ 😀", "&amp; &lt;b&gt;", ":fire: *bold* _it_ ~no~ `code`"])
def test_k072_the_title_is_shown_exactly(httpserver: HTTPServer, network: Network, title: str):
    content, _ = sent(httpserver, network, incidents=(incident(title=title, details=title),))
    header, _, details = content["blocks"][:3]
    assert html.unescape(header["text"]["text"]) == f"[api] {title}"
    assert html.unescape(details["text"]["text"]) == title
    assert html.unescape(content["text"]) == f"[api] {title}"
    assert content["mrkdwn"] is False
    assert all(b["text"]["type"] == "plain_text" and not b["text"]["emoji"] for b in (header, details))


@pytest.mark.parametrize(
    "control", ["<!channel>", "<@U123>", "<#C1|x>", "<https://evil.example|Acknowledge>", "<!here|x>"]
)
def test_k073_mentions_and_links_are_only_text(httpserver: HTTPServer, network: Network, control: str):
    nasty = incident(title=control, details=control, service=control, severity=control, status=control)
    content, _ = sent(httpserver, network, incidents=(nasty, nasty), summary=control)
    assert all("<" not in text and ">" not in text for text in texts(content))
    content, _ = sent(httpserver, network, incidents=(nasty,), summary=control)
    assert all("<" not in text and ">" not in text for text in texts(content))


@pytest.mark.parametrize("character", ["x", "&", "😀"])
def test_k068_k069_long_texts_are_cut_visibly_and_the_receipt_says_so(httpserver, network, character):
    long = incident(title=character * 1000, details=character * 20000)
    content, receipt = sent(httpserver, network, incidents=(long,))
    for block in content["blocks"]:
        limit = 150 if block["type"] == "header" else 3000
        if "text" in block:
            assert len(block["text"]["text"].encode("utf-16-le")) // 2 <= limit
    assert any(text.endswith(f"{slack.escape(character)}…") for text in texts(content))
    assert "Open #7" in buttons(content)
    assert receipt.note == "shortened to fit Slack's limits"


def test_k068_many_incidents_stay_within_the_blocks(httpserver: HTTPServer, network: Network):
    many = tuple(incident(id=n, title=f"t{n}") for n in range(1, 101))
    content, receipt = sent(httpserver, network, incidents=many)
    assert content["text"] == "100 incidents: [api] t1 and 99 more"
    assert len(content["blocks"]) <= 50
    assert "… and 80 more" in texts(content)
    assert buttons(content)["Open #3"] == "https://escalade.example/incidents/7"
    assert "Acknowledge" in buttons(content)
    assert receipt.note != ""


@pytest.mark.parametrize(
    ("status", "reason", "permanent"),
    [
        (400, "invalid_payload", True),
        (403, "action_prohibited", True),
        (404, "no_service", True),
        (410, "channel_is_archived", True),
        (500, "no_service", True),
        (500, "rollup_error", False),
        (429, "rate_limited", False),
    ],
)
def test_k062_which_answers_are_final(httpserver: HTTPServer, network: Network, status, reason, permanent):
    httpserver.expect_request("/x").respond_with_data(reason, status=status)
    with pytest.raises(DeliveryError) as caught:
        slack.send(page(httpserver.url_for("/x")), network)
    assert caught.value.permanent is permanent
    assert reason in caught.value.message
    assert str(caught.value) == caught.value.message


def test_k079_the_record_holds_no_acknowledge_link(httpserver: HTTPServer, network: Network):
    _, receipt = sent(httpserver, network)
    assert "acknowledge-token-123" not in receipt.request
    assert "/services/T0" not in receipt.request
