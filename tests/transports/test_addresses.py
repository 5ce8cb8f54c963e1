"""The list of transports, and what they say about addresses."""

import logging

import pytest

from escalade.transports import TRANSPORTS, mask
from escalade.transports.base import Network
from tests.transports.conftest import incident, page


def test_the_list_of_transports():
    assert {kind: transport.default_pace for kind, transport in TRANSPORTS.items()} == {
        "webhook": 0,
        "email": 10,
        "slack": 10,
        "ntfy": 10,
        "push": 10,
        "log": 0,
    }
    assert all(kind == transport.kind for kind, transport in TRANSPORTS.items())
    assert [kind for kind, transport in TRANSPORTS.items() if transport.secret_address] == ["slack", "push"]
    assert [kind for kind, transport in TRANSPORTS.items() if transport.takes_secret] == ["webhook", "ntfy"]


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("webhook", "http://127.0.0.1:9999/alice"),
        ("webhook", "https://user:pass@example.com/hook?x=1"),
        ("webhook", "https://[2606:4700::1111]/"),
        ("webhook", "https://bücher.example/"),
        ("slack", "https://hooks.slack.com/services/T0/B0/x"),
        ("ntfy", "https://ntfy.sh/my-topic"),
        ("email", "alice@example.com"),
        ("email", "o'brien+pager@bücher.example"),
        ("email", "root@localhost"),
        ("log", ""),
        ("log", "anything"),
    ],
)
def test_good_addresses(kind: str, address: str):
    assert TRANSPORTS[kind].check_address(address) is None


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("webhook", "example.com/hook"),
        ("webhook", "ftp://example.com/"),
        ("webhook", "https://"),
        ("slack", "https://user:pass@hooks.slack.com/services/T0/B0/x"),
        ("slack", "#alerts"),
        ("ntfy", "https://ntfy.sh/"),
        ("email", ""),
        ("email", "alice"),
        ("email", "alice@"),
        ("email", "@example.com"),
        ("email", "a@b@example.com"),
        ("email", "alice@exam ple.com"),
        ("email", "alice@example..com"),
        ("email", "alice@-example.com"),
        ("email", ".alice@example.com"),
        ("email", "älice@example.com"),
        ("email", "Alice <alice@example.com>"),
        ("email", "alice@example.com\r\nBcc: eve@example.com"),
        ("email", "alice@example.com\n"),
    ],
)
def test_bad_addresses_are_named_in_one_sentence(kind: str, address: str):
    fault = TRANSPORTS[kind].check_address(address)
    assert fault is not None
    assert fault.endswith(".") and "\n" not in fault


@pytest.mark.parametrize(
    ("kind", "address", "shown"),
    [
        ("slack", "https://hooks.slack.com/services/T0/B0/x", "https://hooks.slack.com/..."),
        ("webhook", "http://user:pass@127.0.0.1:9999/alice?key=1", "http://127.0.0.1:9999/..."),
        ("webhook", "https://example.com", "https://example.com"),
        ("webhook", "https://example.com/?key=1", "https://example.com/..."),
        ("webhook", "https://[2606:4700::1111]:8443/x", "https://[2606:4700::1111]:8443/..."),
        ("ntfy", "https://ntfy.sh/topic", "https://ntfy.sh/..."),
        ("email", "alice@example.com", "a***@example.com"),
        ("email", "nonsense", "***"),
        ("webhook", "nonsense", "***"),
        ("log", "demo", "demo"),
    ],
)
def test_k079_addresses_are_shown_without_secrets(kind: str, address: str, shown: str):
    assert mask(kind, address) == shown


@pytest.mark.parametrize(
    ("kind", "address", "gate"),
    [
        ("webhook", "https://Example.com/a", "webhook:example.com:443"),
        ("webhook", "http://127.0.0.1:9999/alice", "webhook:127.0.0.1:9999"),
        ("slack", "https://hooks.slack.com/services/T0/B0/x", "slack:hooks.slack.com:443"),
        ("ntfy", "http://[::1]/t", "ntfy:[::1]:80"),
        ("webhook", "nonsense", "webhook"),
        ("email", "alice@example.com", "email"),
        ("log", "", "log"),
    ],
)
def test_the_gate_of_an_address(kind: str, address: str, gate: str):
    assert TRANSPORTS[kind].destination(address) == gate


def test_the_log_gets_the_whole_page_on_one_line(caplog: pytest.LogCaptureFixture):
    nasty = incident(title='two\r\nlines\x1b[31m {"level": "error"}\u2028')
    with caplog.at_level(logging.INFO, logger="escalade.page"):
        TRANSPORTS["log"].send(page(incidents=(nasty,)), Network())
    (record,) = caplog.records
    line = record.getMessage()
    assert len(line.splitlines()) == 1
    assert "https://escalade.example/a/acknowledge-token-123" in line
    assert "page to Alice" in line
    assert '[api] two  lines [31m {"level": "error"}' in line
