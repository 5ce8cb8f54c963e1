"""Pages by mail: what the letter says, that nothing breaks its headers, and how the server's answers are judged."""

import email
import email.policy
import re
import socket
import struct
import threading
import time
from dataclasses import replace
from email.message import EmailMessage

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from hypothesis import example, given
from hypothesis import strategies as st

from escalade.transports import TRANSPORTS, letter
from escalade.transports.base import DeliveryError, Network
from escalade.transports.smtp import deliver, parse_server
from escalade.transports.text import one_line
from tests.transports.conftest import drip, incident, page

# What a send may take beyond its deadline on a busy machine. One that has no deadline never ends.
SLACK = 5.0
send = TRANSPORTS["email"].send


class Mailbox:
    """An aiosmtpd handler that keeps what it gets, and answers as it is told."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []
        self.envelopes: list[tuple[str, list[str]]] = []
        self.rcpt_answer = "250 OK"
        self.data_answer = "250 2.0.0 queued as 4711"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if self.rcpt_answer.startswith("2"):
            envelope.rcpt_tos.append(address)
        return self.rcpt_answer

    async def handle_DATA(self, server, session, envelope):
        self.mails.append(envelope.content)
        self.envelopes.append((envelope.mail_from, envelope.rcpt_tos))
        return self.data_answer


class LoopbackController(Controller):
    """A controller that notes which free port it was given."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@pytest.fixture
def mailbox():
    return Mailbox()


@pytest.fixture
def start(mailbox):
    """Start a mail server for the mailbox, with aiosmtpd's own options."""
    controllers = []

    def run(**options) -> int:
        controllers.append(LoopbackController(mailbox, hostname="127.0.0.1", port=0, **options))
        controllers[-1].start()
        return controllers[-1].port

    yield run
    for controller in controllers:
        controller.stop()


@pytest.fixture
def mail_network(start, network: Network) -> Network:
    return replace(network, smtp_url=f"smtp://127.0.0.1:{start()}", mail_from="Escalade <pager@escalade.example>")


def parsed(raw: bytes) -> EmailMessage:
    return email.message_from_bytes(raw, policy=email.policy.default)


def letter_of(**changes) -> EmailMessage:
    raw, _ = letter.write(
        page("alice@example.com", **changes), "Escalade", "pager@escalade.example", "alice@example.com"
    )
    return parsed(raw)


def part(mail: EmailMessage, kind: str) -> str:
    (found,) = [p for p in mail.walk() if p.get_content_type() == f"text/{kind}"]
    return found.get_content()


def fails(message, network):
    began = time.monotonic()
    with pytest.raises(DeliveryError) as caught:
        send(message, network)
    assert time.monotonic() - began < network.deadline + SLACK
    return caught.value


def sort(error):
    return "permanent" if error.permanent else "unknown" if error.unknown else "retry"


def test_a_page_arrives(mailbox, mail_network: Network):
    receipt = send(page("alice@example.com"), mail_network)
    assert receipt.answer == "250 2.0.0 queued as 4711"
    assert mailbox.envelopes == [("pager@escalade.example", ["alice@example.com"])]
    mail = parsed(mailbox.mails[0])
    assert mail["Subject"] == "[api] Disk full on web1"
    assert mail["From"] == "Escalade <pager@escalade.example>"
    assert mail["To"] == "alice@example.com"
    assert mail["Date"].datetime is not None
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["X-Auto-Response-Suppress"] == "All"
    assert mail.get_content_type() == "multipart/alternative"
    for kind in ("plain", "html"):
        text = part(mail, kind)
        for piece in ("https://escalade.example/a/acknowledge-token-123", "/dev/sda1 is at 99 %", "#7"):
            assert piece in text


def test_every_try_carries_the_same_id_and_all_mails_of_an_incident_thread(mailbox, mail_network: Network):
    send(page("alice@example.com"), mail_network)
    send(page("alice@example.com"), mail_network)
    send(page("alice@example.com", type="notice", event="resolved", key="att-40-0", ack_url=None), mail_network)
    first, again, notice = map(parsed, mailbox.mails)
    assert first["Message-ID"] == again["Message-ID"] == "<att-31-0@escalade.example>"
    assert notice["Message-ID"] != first["Message-ID"]
    for mail in (first, again, notice):
        assert mail["In-Reply-To"] == mail["References"] == "<incident-7@escalade.example>"
    assert notice["Subject"] == f"Re: {first['Subject']}"
    assert "Resolved: [api] Disk full on web1" in part(notice, "plain")


def test_a_key_that_fits_no_header_is_hashed():
    assert re.fullmatch(r"<[0-9a-f]{64}@escalade\.example>", letter_of(key="a b\r\nX-Evil: 1")["Message-ID"])


def test_several_incidents_are_listed_and_acknowledged_together():
    mail = letter_of(incidents=tuple(incident(id=n, title=f"fault {n}") for n in (1, 2, 3)))
    assert mail["Subject"] == "3 incidents: [api] fault 1 and 2 more"
    assert mail["References"].split() == [f"<incident-{n}@escalade.example>" for n in (1, 2, 3)]
    for kind in ("plain", "html"):
        assert all(f"[api] fault {n}" in part(mail, kind) for n in (1, 2, 3))
        assert part(mail, kind).count("acknowledge-token-123") == 1


def test_a_message_about_no_incident():
    mail = letter_of(type="notice", event="verification", incidents=(), ack_url=None, summary="Your code is 1234.")
    assert mail["Subject"] == "Confirm that Escalade may reach you here"
    assert "Your code is 1234." in part(mail, "plain")
    assert "References" not in mail


def test_k070_headers_are_ascii_and_decode_to_the_title(mailbox, mail_network: Network):
    title = "Plattenplatz auf „Größe“ 磁盘已满 😀 " * 4
    send(page("alice@example.com", incidents=(incident(title=title),)), mail_network)
    head, _, _ = mailbox.mails[0].partition(b"\r\n\r\n")
    assert head.isascii()
    mail = parsed(mailbox.mails[0])
    assert mail["Subject"] == f"[api] {title.strip()}"
    assert all(p.get_content_charset() == "utf-8" for p in mail.iter_parts())


def test_k071_a_title_cannot_inject_a_header(mailbox, mail_network: Network):
    title = "Disk\r\nBcc: eve@example.com\r\n\r\n<h1>body</h1>\x00\x1b\x85\u2028X-Evil: 1"
    send(page("alice@example.com", incidents=(incident(title=title, service="a\r\nX-Evil: 2"),)), mail_network)
    mail = parsed(mailbox.mails[0])
    assert mail["Bcc"] is None and mail["X-Evil"] is None
    assert mail["Subject"].startswith("[a  X-Evil: 2] Disk  Bcc: eve@example.com")
    assert mailbox.envelopes[0][1] == ["alice@example.com"]


@pytest.mark.parametrize("title", ["& < > \" ' ` * _ 😀", "&amp; <b>bold</b>", "=?utf-8?q?not_encoded?="])
def test_k072_the_title_is_shown_exactly(title: str):
    mail = letter_of(incidents=(incident(title=title, details=title),))
    assert mail["Subject"] == f"[api] {title}"
    assert f"[api] {title}\n" in part(mail, "plain")
    shown = title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = shown.replace('"', "&quot;").replace("'", "&#x27;")
    assert f"<strong>[api] {shown}</strong>" in part(mail, "html")


@given(st.text(max_size=300), st.one_of(st.none(), st.text(max_size=40)))
@example("a\ud800b", None)
@example("=?utf-8?b?!!?= =?", "=?x?=")
@example(" " * 200 + "x", "")
@example("x" * 300, "é" * 40)
def test_k070_k071_any_title_makes_a_sound_mail(title: str, service: str | None):
    subject_only = page("alice@example.com", incidents=(incident(title=title, service=service, details=title),))
    raw, _ = letter.write(subject_only, "Escalade", "pager@escalade.example", "alice@example.com")
    head, _, _ = raw.partition(b"\r\n\r\n")
    assert raw.isascii()
    assert b"\n" not in raw.replace(b"\r\n", b"") and b"\r" not in raw.replace(b"\r\n", b"")
    assert all(len(line) <= 78 for line in raw.split(b"\r\n") if b"boundary=" not in line)
    names = re.findall(rb"^([A-Za-z-]+):", head, re.MULTILINE)
    assert sorted(names) == sorted(
        b"Content-Type MIME-Version Subject From To Date Message-ID In-Reply-To References "
        b"Auto-Submitted X-Auto-Response-Suppress".split()
    )
    shown = one_line(title) or "(no title)"
    expected = f"[{one_line(service)}] {shown}" if service else shown
    found = str(parsed(raw)["Subject"])
    if len(expected) <= letter.SUBJECT_LIMIT:
        assert found == expected
    else:
        assert found == expected[: letter.SUBJECT_LIMIT - 1] + "…"


def test_k068_k069_long_texts_are_cut_visibly_and_the_receipt_says_so(mailbox, mail_network: Network):
    long = incident(title="ä" * 1000, details="d" * 20000)
    receipt = send(page("alice@example.com", incidents=(long,)), mail_network)
    mail = parsed(mailbox.mails[0])
    assert mail["Subject"].endswith("ä…")
    assert "d…\nOpen: https://escalade.example/incidents/7" in part(mail, "plain")
    assert receipt.note == "shortened to fit a mail"


def test_lines_that_begin_with_a_dot_do_not_end_the_mail(mailbox, mail_network: Network, monkeypatch):
    monkeypatch.setattr(letter, "write", lambda *args: (b"Subject: x\r\n\r\n.\r\n..\r\n.end\r\n\r\n", False))
    send(page("alice@example.com"), mail_network)
    assert mailbox.mails[0] == b"Subject: x\r\n\r\n.\r\n..\r\n.end\r\n"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("550 5.1.1 <alice@example.com>: no such user", "permanent"),
        ("552 mailbox full", "permanent"),
        ("450 4.2.0 greylisted", "retry"),
        ("421 too busy", "retry"),
        ("550 4.7.1 come back later", "retry"),
        ("451 5.7.1 never", "permanent"),
    ],
)
def test_k065_a_refused_recipient(mailbox, mail_network: Network, answer: str, expected: str):
    mailbox.rcpt_answer = answer
    error = fails(page("alice@example.com"), mail_network)
    assert sort(error) == expected
    assert answer.replace("alice@", "a***@") in error.message
    assert "alice@" not in error.message + error.answer + error.request
    assert not mailbox.mails


@pytest.mark.parametrize(("answer", "expected"), [("554 5.7.1 spam", "permanent"), ("451 local error", "retry")])
def test_k065_a_refused_mail(mailbox, mail_network: Network, answer: str, expected: str):
    mailbox.data_answer = answer
    error = fails(page("alice@example.com"), mail_network)
    assert sort(error) == expected
    assert answer in error.message


def test_without_a_server_mail_fails_with_what_to_do(network: Network):
    error = fails(page("alice@example.com"), network)
    assert sort(error) == "permanent"
    assert error.message == "SMTP_URL is not set: set it, start Escalade again, and replay."


@pytest.mark.parametrize("address", ["nobody", "älice@example.com", "a@b.example\r\nRCPT TO:<eve@example.com>"])
def test_a_bad_address_is_final(mail_network: Network, address: str):
    assert sort(fails(page(address), mail_network)) == "permanent"


def test_a_sender_that_is_no_address_is_said_clearly(mail_network: Network):
    error = fails(page("alice@example.com"), replace(mail_network, mail_from="the pager"))
    assert sort(error) == "permanent"
    assert error.message == "ESCALADE_MAIL_FROM is no e-mail address."


def test_a_domain_beyond_ascii_is_encoded(mailbox, mail_network: Network):
    send(page("alice@bücher.example"), mail_network)
    assert mailbox.envelopes[0][1] == ["alice@xn--bcher-kva.example"]


def authenticator(server, session, envelope, mechanism, data):
    right = data.login == b"me" and data.password == b"hunter22"
    return AuthResult(success=right, handled=False)


def test_starttls_and_login(start, mailbox, network: Network, server_tls, trust):
    port = start(tls_context=server_tls, require_starttls=True, authenticator=authenticator, auth_required=True)
    url = f"smtp://me:hunter22@127.0.0.1:{port}?starttls=required"
    send(page("alice@example.com"), replace(network, smtp_url=url, mail_from="pager@escalade.example"))
    assert len(mailbox.mails) == 1


def test_k079_a_wrong_password_is_final_and_not_shown(start, network: Network, server_tls, trust):
    port = start(tls_context=server_tls, authenticator=authenticator)
    error = fails(page("alice@example.com"), replace(network, smtp_url=f"smtp://me:wrongpass@127.0.0.1:{port}"))
    assert sort(error) == "permanent", error.message
    assert "535" in error.message
    assert "wrongpass" not in error.message + error.request


def test_tls_from_the_start(serve, network: Network, server_tls, trust):
    def script(connection, stop):
        with server_tls.wrap_socket(connection, server_side=True) as secure:
            converse(secure)

    server = serve(script)
    receipt = send(page("alice@example.com"), replace(network, smtp_url=f"smtps://127.0.0.1:{server.port}"))
    assert receipt.answer == "250 accepted"


def test_a_certificate_that_is_not_trusted_is_not_talked_to(start, mailbox, network: Network, server_tls):
    port = start(tls_context=server_tls)
    error = fails(page("alice@example.com"), replace(network, smtp_url=f"smtp://127.0.0.1:{port}"))
    assert sort(error) == "retry"
    assert "certificate" in error.message
    assert not mailbox.mails


def test_required_starttls_fails_closed(start, mailbox, network: Network):
    url = f"smtp://127.0.0.1:{start()}?starttls=required"
    error = fails(page("alice@example.com"), replace(network, smtp_url=url))
    assert sort(error) == "permanent"
    assert "offers no STARTTLS" in error.message
    assert not mailbox.mails


def test_a_login_that_is_not_offered_is_said_clearly(start, network: Network):
    error = fails(page("alice@example.com"), replace(network, smtp_url=f"smtp://me:pw@127.0.0.1:{start()}"))
    assert sort(error) == "permanent"
    assert "offers no login" in error.message


def converse(connection: socket.socket, until: str = "QUIT") -> None:
    """A polite server as far as the command `until`; DOT is the end of the mail."""
    lines = connection.makefile("rb")
    connection.sendall(b"220 ready\r\n")
    in_data = False
    for line in lines:
        if in_data and line != b".\r\n":
            continue
        command = "DOT" if in_data else line[:4].decode().upper().strip()
        if command == until:
            return
        in_data = command == "DATA"
        connection.sendall({"DATA": b"354 go on\r\n", "DOT": b"250 accepted\r\n"}.get(command, b"250 fine\r\n"))


def at(network: Network, server) -> Network:
    return replace(network, smtp_url=f"smtp://127.0.0.1:{server.port}")


def test_a_dripped_greeting_ends_at_the_deadline(serve, hasty: Network):
    server = serve(lambda connection, stop: drip(connection, stop, b"220 " + b"x" * 1000))
    error = fails(page("alice@example.com"), at(hasty, server))
    assert sort(error) == "retry"
    assert "within the 0.7 s a send may take" in error.message


def test_a_look_up_that_hangs_ends_at_the_deadline(hasty: Network):
    over = threading.Event()

    def hang(host: str) -> list[str]:
        over.wait(30)
        return []

    began = time.monotonic()
    with pytest.raises(DeliveryError) as caught:
        deliver(parse_server("smtp://mail.test"), "a@b.example", "c@d.example", b"", hasty, hang)
    over.set()
    assert time.monotonic() - began < hasty.deadline + SLACK
    assert sort(caught.value) == "retry"


def test_an_endless_greeting_ends(serve, hasty: Network):
    def script(connection, stop):
        while not stop.is_set():
            connection.sendall(b"220-welcome\r\n" * 1000)

    assert sort(fails(page("alice@example.com"), at(hasty, serve(script)))) == "retry"


def test_a_silent_server_ends_at_the_read_timeout(serve, hasty: Network):
    server = serve(lambda connection, stop: stop.wait(30))
    error = fails(page("alice@example.com"), at(hasty, server))
    assert sort(error) == "retry"
    assert "silent for 0.4 s" in error.message


def test_a_starttls_that_hangs_ends_in_time(serve, hasty: Network):
    def script(connection, stop):
        connection.sendall(b"220 ready\r\n")
        connection.recv(1000)
        connection.sendall(b"250-here\r\n250 STARTTLS\r\n")
        connection.recv(1000)
        connection.sendall(b"220 go\r\n")
        stop.wait(30)

    error = fails(page("alice@example.com"), at(hasty, serve(script)))
    assert sort(error) == "retry"
    assert "TLS handshake" in error.message


def test_what_is_no_mail_server_is_tried_again(serve, network: Network):
    error = fails(
        page("alice@example.com"), at(network, serve(lambda c, stop: c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")))
    )
    assert sort(error) == "retry"


@pytest.mark.parametrize("command", ["EHLO", "MAIL", "RCPT", "DATA"])
def test_k057_a_connection_lost_before_the_mail_is_tried_again(serve, network: Network, command: str):
    server = serve(lambda connection, stop: converse(connection, command))
    assert sort(fails(page("alice@example.com"), at(network, server))) == "retry"


def test_k064_a_connection_lost_after_the_final_dot_is_unknown(serve, network: Network):
    error = fails(page("alice@example.com"), at(network, serve(lambda connection, stop: converse(connection, "DOT"))))
    assert sort(error) == "unknown"
    assert "may have been delivered" in error.message


def test_k064_a_reset_after_the_final_dot_is_unknown(serve, network: Network):
    def script(connection, stop):
        converse(connection, "DOT")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    assert sort(fails(page("alice@example.com"), at(network, serve(script)))) == "unknown"


def test_k064_silence_after_the_final_dot_is_unknown(serve, hasty: Network):
    def script(connection, stop):
        converse(connection, "DOT")
        drip(connection, stop, b"2" * 1000)

    assert sort(fails(page("alice@example.com"), at(hasty, serve(script)))) == "unknown"


def test_k057_a_refused_connection_is_tried_again(network: Network):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = fails(page("alice@example.com"), replace(network, smtp_url=f"smtp://127.0.0.1:{port}"))
    assert sort(error) == "retry"
    assert error.message == f"No connection to smtp://127.0.0.1:{port}: Connection refused."


def test_a_server_in_the_configuration():
    server = parse_server("smtp://me%40x:p%2Fw@mail.example.com?starttls=required")
    assert (server.host, server.port, server.tls, server.starttls) == ("mail.example.com", 587, False, "required")
    assert (server.user, server.password) == ("me@x", "p/w")
    assert "p/w" not in repr(server)
    assert parse_server("smtps://mail.example.com").port == 465


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com",
        "http://mail.example.com",
        "smtp://",
        "smtp://host:port",
        "smtp://host?starttls=maybe",
        "smtp://host?tls=1",
        "smtp://me:pässword@host",
    ],
)
def test_k079_a_wrong_server_is_named_without_its_password(network: Network, url: str):
    with pytest.raises(ValueError) as caught:
        parse_server(url)
    assert "SMTP_URL" in str(caught.value) and "ssword" not in str(caught.value)
    assert sort(fails(page("alice@example.com"), replace(network, smtp_url=url))) == "permanent"
