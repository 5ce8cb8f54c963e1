"""requests sends, and by our adapter alone: nothing it does by itself reaches a page."""

import ipaddress
import logging
import socket
import threading

import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer

from escalade.transports import http
from escalade.transports.adapter import BoundedAdapter
from escalade.transports.addresses import parse_web
from escalade.transports.base import DeliveryError, Network
from escalade.transports.deadline import Deadline
from escalade.transports.wire import dial
from tests.transports.conftest import read_request


def answering(*lines: bytes, seen: list[bytes] | None = None):
    """A script that reads a request and answers with these lines, then the body `ok`."""

    def script(connection, stop):
        request = read_request(connection)
        if seen is not None:
            seen.append(request)
        connection.sendall(b"\r\n".join(lines) + b"\r\nContent-Length: 2\r\n\r\nok")

    return script


def test_the_answer_is_what_any_session_of_requests_gives(serve, network: Network):
    server = serve(answering(b"HTTP/1.1 207 Multi-Status", b"X-A: 1", b"x-a: 2"))
    with requests.Session() as session:
        session.mount("http://", BoundedAdapter(network))
        response = session.put(server.url, data=b"{}")
    assert (response.status_code, response.reason, response.text) == (207, "Multi-Status", "ok")
    assert response.headers["X-A"] == "1, 2"
    assert response.url == server.url and response.request.method == "PUT"


def test_no_call_can_loosen_the_network(serve, network: Network, server_tls):
    def script(connection, stop):
        server_tls.wrap_socket(connection, server_side=True).close()

    server = serve(script)
    with requests.Session() as session, pytest.raises(DeliveryError) as caught:
        session.mount("https://", BoundedAdapter(network))
        session.post(f"https://127.0.0.1:{server.port}/", verify=False, proxies={"https": "http://127.0.0.1:9"})
    assert "has no valid certificate" in caught.value.message


@pytest.mark.parametrize("location", ["http://[bad", "//", "\xff\x00", "http://127.0.0.1:1/" + "a" * 9000])
def test_k080_where_a_redirect_leads_is_not_even_read(serve, network: Network, location: str):
    server = serve(answering(b"HTTP/1.1 302 Found", b"Location: " + location.encode("latin-1")))
    with pytest.raises(DeliveryError) as caught:
        http.post(server.url, b"{}", {}, network)
    assert caught.value.permanent and "redirect" in caught.value.message
    assert server.connections == 1


def test_no_cookie_is_kept_between_sends(serve, network: Network):
    seen: list[bytes] = []
    server = serve(answering(b"HTTP/1.1 200 OK", b"Set-Cookie: session=stolen; Path=/", seen=seen))
    for _ in range(2):
        http.post(server.url, b"{}", {}, network)
    assert len(seen) == 2 and not any(b"cookie" in request.lower() for request in seen)


def test_a_thread_keeps_its_session_and_shares_it_with_none(serve, network: Network, monkeypatch):
    server = serve(answering(b"HTTP/1.1 200 OK"))
    built = []
    begin = requests.Session.__init__
    monkeypatch.setattr(
        requests.Session, "__init__", lambda self: (built.append(threading.get_ident()), begin(self))[1]
    )

    def send() -> None:
        for _ in range(3):
            http.post(server.url, b"{}", {}, network)

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(built) == len(set(built)) == 2
    assert server.connections == 6


def test_an_address_is_asked_for_as_its_receiver_gave_it(serve, network: Network):
    seen: list[bytes] = []
    server = serve(answering(b"HTTP/1.1 200 OK", seen=seen))
    http.post(f"http://127.0.0.1:{server.port}//a%7Eb/%2D?sig=%41%2F~", b"", {}, network)
    assert seen[0].startswith(b"POST //a%7Eb/%2D?sig=%41%2F~ HTTP/1.1\r\n")
    assert b"content-length: 0\r\n" in seen[0].lower()


@given(
    st.sampled_from(["pager.test", "a.b.", "bücher.example", "1.2.3.4", "[::1]", "[fe80::1%25lo]", "a%41", "*", ".a"])
    | st.text(max_size=12),
    st.sampled_from(["", "me:p%40ss@", "ü:é@", "@"]),
    st.sampled_from(["", ":0", ":80", ":8443"]),
    st.text(max_size=20) | st.sampled_from(["?a=%zz", "//x", "/../a", "/%", "/#f"]),
)
@example("*.example.com", "", "", "/")
def test_requests_takes_every_address_we_take(host: str, login: str, port: str, rest: str):
    try:
        web = parse_web(f"http://{login}{host}{port}{rest}")
    except ValueError:
        return
    request = http._prepare(requests.Session(), web, b"", {})
    again = parse_web(request.url or "")
    assert (again.host, again.port, again.target, again.user) == (web.host, web.port, web.target, None)


def test_k079_nothing_is_logged_of_a_send(httpserver: HTTPServer, network: Network, caplog: pytest.LogCaptureFixture):
    httpserver.expect_request("/hooks/pathsecret").respond_with_data("no", status=404)
    address = f"http://me:hunter22@127.0.0.1:{httpserver.port}/hooks/pathsecret"
    headers = {"Authorization": "Bearer headersecret"}
    with caplog.at_level(logging.DEBUG):
        for where, sent in ((address, headers), (address, {"X": "headersecret\r\n"}), (address[:-12], headers)):
            with pytest.raises(DeliveryError) as caught:
                http.post(where, b"{}", sent, network)
            assert "secret" not in str(caught.value) and "hunter22" not in str(caught.value)
    ours = [
        record for record in caplog.records if record.name.partition(".")[0] not in ("werkzeug", "pytest_httpserver")
    ]
    assert ours == []


def test_the_body_waits_for_no_receipt_of_the_headers(serve, network: Network):
    # They leave as two writes, and a system holds the second back (by 40 ms, say) unless it is told not to.
    server = serve(answering(b"HTTP/1.1 200 OK"))
    with dial([ipaddress.ip_address("127.0.0.1")], server.port, "there", network, Deadline(20)) as wire:
        assert wire._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
