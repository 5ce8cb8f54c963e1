"""What becomes of a POST: accepted, refused for good, to be tried again, or unknown; and always in time."""

import ipaddress
import socket
import struct
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from escalade.transports import adapter, http
from escalade.transports.base import DeliveryError, Network
from tests.transports.conftest import drip, read_request

# What a send may take beyond its deadline on a busy machine. One that has no deadline never ends.
SLACK = 5.0


def fails(address, network, **options):
    """Send, and return the error it must raise, having ended in time."""
    began = time.monotonic()
    with pytest.raises(DeliveryError) as caught:
        http.post(address, b'{"a": 1}', {}, network, **options)
    assert time.monotonic() - began < network.deadline + SLACK
    return caught.value


def sort(error):
    return "permanent" if error.permanent else "unknown" if error.unknown else "retry"


def test_a_2xx_answer_is_a_receipt(httpserver: HTTPServer, network: Network):
    httpserver.expect_request("/hook", query_string="x=1", method="POST", data='{"a": 1}').respond_with_data(
        "got\nit", status=202
    )
    receipt = http.post(httpserver.url_for("/hook?x=1"), b'{"a": 1}', {"X-Key": "k"}, network)
    assert receipt.answer == "202 got it"
    headers = httpserver.log[0][0].headers
    assert headers["X-Key"] == "k"
    assert headers["User-Agent"].startswith("Escalade/")
    assert headers["Content-Type"] == "application/json"
    assert headers["Host"] == f"localhost:{httpserver.port}"


def test_a_login_in_the_address_is_sent_as_basic(httpserver: HTTPServer, network: Network):
    httpserver.expect_request("/").respond_with_data("ok")
    http.post(f"http://me:p%40ss@127.0.0.1:{httpserver.port}/", b"{}", {}, network)
    authorization = httpserver.log[0][0].authorization
    assert authorization is not None
    assert (authorization.username, authorization.password) == ("me", "p@ss")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 507])
def test_k055_passing_faults_are_tried_again(httpserver: HTTPServer, network: Network, status: int):
    httpserver.expect_request("/").respond_with_data("busy", status=status)
    error = fails(httpserver.url_for("/"), network)
    assert sort(error) == "retry"
    assert error.limited == (status == 429)
    assert f"answered {status} busy" in error.message


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 413, 422])
def test_k062_other_4xx_are_final(httpserver: HTTPServer, network: Network, status: int):
    httpserver.expect_request("/").respond_with_data("no", status=status)
    assert sort(fails(httpserver.url_for("/"), network)) == "permanent"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_k080_redirects_are_not_followed(httpserver: HTTPServer, network: Network, status: int):
    httpserver.expect_request("/").respond_with_data("", status=status, headers={"Location": "http://169.254.169.254/"})
    error = fails(httpserver.url_for("/"), network)
    assert sort(error) == "permanent"
    assert "redirect" in error.message
    assert len(httpserver.log) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_in_seconds(httpserver: HTTPServer, network: Network, status: int):
    httpserver.expect_request("/").respond_with_data("", status=status, headers={"Retry-After": "17"})
    assert fails(httpserver.url_for("/"), network).retry_after == 17


def test_retry_after_as_a_date(httpserver: HTTPServer, network: Network):
    def answer(request: Request) -> Response:
        at = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        return Response("", status=429, headers={"Retry-After": at})

    httpserver.expect_request("/").respond_with_handler(answer)
    wait = fails(httpserver.url_for("/"), network).retry_after
    assert wait is not None and 3000 < wait <= 3600


def test_retry_after_that_makes_no_sense_is_none(httpserver: HTTPServer, network: Network):
    httpserver.expect_request("/").respond_with_data("", status=429, headers={"Retry-After": "soon"})
    assert fails(httpserver.url_for("/"), network).retry_after is None


def test_k057_a_refused_connection_is_tried_again(network: Network):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = fails(f"http://127.0.0.1:{port}/secret-path", network)
    assert sort(error) == "retry"
    assert error.message == f"No connection to http://127.0.0.1:{port}/...: Connection refused."


def test_k057_a_connection_that_is_never_accepted_is_tried_again(hasty: Network):
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        time.sleep(0.05)
        error = fails(f"http://127.0.0.1:{full.getsockname()[1]}/", hasty)
    assert sort(error) == "retry"
    assert "did not accept a connection in time" in error.message


def test_k057_an_unknown_name_is_tried_again(network: Network):
    def nowhere(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    error = fails("http://pager.test/secret-path", network, look_up=nowhere)
    assert sort(error) == "retry"
    assert error.message == "The look-up of the name in http://pager.test/... failed: Name or service not known."


def test_k057_a_look_up_that_hangs_ends_at_the_deadline(hasty: Network):
    over = threading.Event()

    def hang(host: str) -> list[str]:
        over.wait(30)
        return ["127.0.0.1"]

    error = fails("http://pager.test/", hasty, look_up=hang)
    over.set()
    assert sort(error) == "retry"
    assert "no answer within 0.7 s" in error.message


def test_the_next_address_is_tried_where_the_first_refuses(httpserver: HTTPServer, network: Network):
    httpserver.expect_request("/").respond_with_data("ok")
    receipt = http.post(
        f"http://pager.test:{httpserver.port}/", b"{}", {}, network, look_up=lambda host: ["127.9.9.9", "127.0.0.1"]
    )
    assert receipt.answer == "200 ok"


def test_k064_silence_after_the_request_is_unknown(serve, hasty: Network):
    def script(connection, stop):
        read_request(connection)
        stop.wait(30)

    error = fails(serve(script).url, hasty)
    assert sort(error) == "unknown"
    assert "gave no answer for 0.4 s; it may have been delivered" in error.message


def test_k064_a_reset_after_the_request_is_unknown(serve, network: Network):
    def script(connection, stop):
        read_request(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    error = fails(serve(script).url, network)
    assert sort(error) == "unknown"
    assert "closed the connection" in error.message


def test_k064_a_close_in_the_headers_is_unknown(serve, network: Network):
    def script(connection, stop):
        read_request(connection)
        connection.sendall(b"HTTP/1.1")

    assert sort(fails(serve(script).url, network)) == "unknown"


def test_k064_dripped_headers_end_at_the_deadline(serve, hasty: Network):
    def script(connection, stop):
        read_request(connection)
        drip(connection, stop, b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 200)

    error = fails(serve(script).url, hasty)
    assert sort(error) == "unknown"
    assert "within the 0.7 s a send may take" in error.message


def test_k064_endless_interim_answers_end_at_the_deadline(serve, hasty: Network):
    def script(connection, stop):
        read_request(connection)
        while not stop.wait(0.01):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    assert sort(fails(serve(script).url, hasty)) == "unknown"


def test_k064_what_is_no_http_is_unknown(serve, hasty: Network):
    def script(connection, stop):
        read_request(connection)
        connection.sendall(b"220 mail.example.com ESMTP\r\n")
        stop.wait(30)

    error = fails(serve(script).url, hasty)
    assert sort(error) == "unknown"
    assert "no HTTP" in error.message


def test_headers_without_end_are_cut_off(serve, hasty: Network):
    def script(connection, stop):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not stop.is_set():
            connection.sendall(b"X-A: " + b"a" * 60000 + b"\r\n")

    assert sort(fails(serve(script).url, hasty)) == "unknown"


def test_a_receiver_that_reads_nothing_ends_at_the_deadline(serve, hasty: Network):
    server = serve(lambda connection, stop: stop.wait(30))
    began = time.monotonic()
    with pytest.raises(DeliveryError) as caught:
        http.post(server.url, b"x" * 20_000_000, {}, hasty)
    assert time.monotonic() - began < hasty.deadline + SLACK
    assert sort(caught.value) == "retry"


def test_a_dripped_body_does_not_take_back_the_acceptance(serve, hasty: Network):
    def script(connection, stop):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nok")
        drip(connection, stop, b"." * 1000)

    began = time.monotonic()
    receipt = http.post(serve(script).url, b"{}", {}, hasty)
    assert time.monotonic() - began < hasty.deadline + SLACK
    assert receipt.answer.startswith("200 ok")


def test_a_dripped_body_of_a_refusal_leaves_its_class(serve, hasty: Network):
    def script(connection, stop):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 404 Not Found\r\n\r\n")
        drip(connection, stop, b"." * 1000)

    assert sort(fails(serve(script).url, hasty)) == "permanent"


def test_a_body_is_not_waited_for_as_long_as_the_deadline_allows(serve, network: Network, monkeypatch):
    monkeypatch.setattr(adapter, "BODY_SECONDS", 0.2)

    def script(connection, stop):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nok")
        stop.wait(30)

    began = time.monotonic()
    assert http.post(serve(script).url, b"{}", {}, network).answer == "200 ok"
    assert time.monotonic() - began < 0.2 + SLACK < network.deadline


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "\u20ac"])
def test_k071_a_header_cannot_be_injected(serve, network: Network, value: str):
    server = serve(lambda connection, stop: None)
    with pytest.raises(DeliveryError) as caught:
        http.post(server.url, b"{}", {"X-Key": value}, network)
    assert sort(caught.value) == "permanent"


def test_an_endless_body_is_cut_off(serve, hasty: Network):
    sent = []

    def script(connection, stop):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not stop.is_set():
            connection.sendall(b"x" * 65536)
            sent.append(65536)

    began = time.monotonic()
    receipt = http.post(serve(script).url, b"{}", {}, hasty)
    assert time.monotonic() - began < hasty.deadline + SLACK
    assert len(receipt.answer) <= 1000
    assert receipt.answer.endswith("…")


def test_tls_is_verified_and_carries_the_name(serve, network: Network, server_tls, trust):
    names = []
    server_tls.sni_callback = lambda sock, name, context: names.append(name)

    def script(connection, stop):
        with server_tls.wrap_socket(connection, server_side=True) as secure:
            request = read_request(secure)
            assert f"host: pager.test:{port}".encode() in request.lower()
            secure.sendall(b"HTTP/1.1 200 OK\r\n\r\nok")

    port = serve(script).port
    receipt = http.post(f"https://pager.test:{port}/", b"{}", {}, network, look_up=lambda host: ["127.0.0.1"])
    assert receipt.answer == "200 ok"
    assert names == ["pager.test"]


@pytest.mark.parametrize("host", ["other.test", "pager.test"])
def test_k057_a_certificate_that_is_not_valid_is_tried_again(serve, network: Network, server_tls, host, request):
    # Trusted but for another name, and for the right name but not trusted.
    if host == "other.test":
        request.getfixturevalue("trust")

    def script(connection, stop):
        server_tls.wrap_socket(connection, server_side=True).close()

    error = fails(f"https://{host}:{serve(script).port}/", network, look_up=lambda name: ["127.0.0.1"])
    assert sort(error) == "retry"
    assert "has no valid certificate" in error.message


def test_k057_a_receiver_without_tls_is_tried_again(serve, network: Network):
    def script(connection, stop):
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    error = fails(f"https://127.0.0.1:{serve(script).port}/", network)
    assert sort(error) == "retry"
    assert "TLS handshake" in error.message


def test_k057_a_tls_handshake_that_hangs_ends_in_time(serve, hasty: Network):
    server = serve(lambda connection, stop: stop.wait(30))
    error = fails(f"https://127.0.0.1:{server.port}/", hasty)
    assert sort(error) == "retry"
    assert "did not finish the TLS handshake in time" in error.message


def test_k057_a_dripped_tls_handshake_ends_in_time(serve, hasty: Network):
    # A handshake record that announces 16 KiB and brings them one byte at a time.
    server = serve(lambda connection, stop: drip(connection, stop, b"\x16\x03\x03\x40\x00" + b"\x02" * 1000))
    assert sort(fails(f"https://127.0.0.1:{server.port}/", hasty)) == "retry"


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0/",
        "http://example.com@127.0.0.1/",
        "http://example.com:80@127.0.0.1:80/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[fc00::1]/",
        "http://[ff02::1]/",
        "http://[2001:db8::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://192.0.2.1/",
        "http://198.18.0.1/",
        "http://224.0.0.1/",
        "http://240.0.0.1/",
        "http://255.255.255.255/",
    ],
)
def test_k080_private_addresses_are_refused_however_they_are_spelt(address: str, network: Network):
    error = fails(address, replace(network, allow_private=()))
    assert sort(error) == "permanent"
    assert "not on the public internet" in error.message


def test_k080_a_name_that_leads_inside_is_refused(network: Network):
    error = fails("http://pager.test/", replace(network, allow_private=()), look_up=lambda host: ["169.254.169.254"])
    assert sort(error) == "permanent"
    assert "169.254.169.254" in error.message


def test_k080_the_address_that_was_checked_is_the_one_connected_to(httpserver: HTTPServer, network: Network):
    httpserver.expect_request("/").respond_with_data("ok")
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    only_this = replace(network, allow_private=(ipaddress.ip_network("127.0.0.1/32"),))
    http.post(f"http://pager.test:{httpserver.port}/", b"{}", {}, only_this, look_up=lambda host: answers.pop(0))
    assert answers == [["169.254.169.254"]]


def test_k080_networks_can_be_allowed(httpserver: HTTPServer, network: Network):
    httpserver.expect_request("/").respond_with_data("ok")
    loopback = replace(network, allow_private=(ipaddress.ip_network("127.0.0.0/8"),))
    assert http.post(f"http://127.0.0.1:{httpserver.port}/", b"{}", {}, loopback).answer == "200 ok"
    assert sort(fails("http://10.0.0.1/", loopback)) == "permanent"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "example.com/hook",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://",
        "http:///x",
        "http://exa mple.com/",
        "http://example.com/a b",
        "http://example.com\\@127.0.0.1/",
        "http://example.com/\r\nX-Evil: 1",
        "http://example.com:99999/",
        "http://a..b/",
        f"http://{'a' * 64}.com/",
    ],
)
def test_k080_what_is_no_web_address_is_refused(address: str, network: Network):
    assert sort(fails(address, network)) == "permanent"


def test_the_environment_has_no_say(httpserver: HTTPServer, network: Network, monkeypatch, tmp_path):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    httpserver.expect_request("/").respond_with_data("ok")
    http.post(f"http://127.0.0.1:{httpserver.port}/", b"{}", {}, network)
    assert "Authorization" not in httpserver.log[0][0].headers


def test_a_configured_proxy_tunnels(serve, network: Network):
    seen = []

    def script(connection, stop):
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1000)
        seen.append(head)
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        seen.append(read_request(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nok")

    by_proxy = replace(network, proxy=f"http://me:pw@127.0.0.1:{serve(script).port}")
    assert http.post("http://pager.test/hook", b"{}", {}, by_proxy).answer == "200 ok"
    assert seen[0].startswith(b"CONNECT pager.test:80 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cHc=" in seen[0]
    assert seen[1].startswith(b"POST /hook HTTP/1.1\r\n")


def test_a_proxy_that_refuses_is_tried_again(serve, network: Network):
    def script(connection, stop):
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    by_proxy = replace(network, proxy=f"http://127.0.0.1:{serve(script).port}")
    error = fails("http://pager.test/hook", by_proxy)
    assert sort(error) == "retry"
    assert "(the proxy) answered 403" in error.message


def test_k080_a_proxy_is_no_way_round_the_refusal(network: Network):
    by_proxy = replace(network, allow_private=(), proxy="http://127.0.0.1:9")
    assert sort(fails("http://169.254.169.254/", by_proxy)) == "permanent"


def test_k079_records_show_the_receiver_without_its_secrets(httpserver: HTTPServer, network: Network):
    def echo(request: Request) -> Response:
        return Response(f"no hook at {request.full_path} for {request.authorization}", status=404)

    httpserver.expect_request("/services/T00000000/secrettoken").respond_with_handler(echo)
    address = f"http://someone:passw0rd@127.0.0.1:{httpserver.port}/services/T00000000/secrettoken?sig=abcdef123456"
    error = fails(address, network, hide=("hidden-value",))
    told = f"{error.message} {error.request} {error.answer} {error!r}"
    for secret in ("T00000000", "secrettoken", "abcdef123456", "passw0rd", "c29tZW9uZTpwYXNzdzByZA=="):
        assert secret not in told
    assert f"http://127.0.0.1:{httpserver.port}/..." in error.message


@pytest.mark.parametrize(
    "address", ["http://u:hunter22@127.0.0.1:1/pathsecret?q=querysecret", "http://u:hunter22@[/pathsecret"]
)
def test_k079_no_failure_before_the_answer_shows_secrets(address: str, network: Network):
    error = fails(address, network)
    assert not any(secret in f"{error.message} {error.request}" for secret in ("hunter22", "pathsecret", "querysecret"))
    assert error.__cause__ is None
