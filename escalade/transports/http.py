"""The one place HTTP leaves from: a POST that ends in time, goes only where it may, and says what went wrong.

It is sent by requests through an adapter of our own (`adapter.py`). No connection is kept: a page is rare, and one
that was kept is stale when it is needed. Nothing is taken from the environment (no proxies, no .netrc), no redirect
is followed and no cookie is kept.
"""

import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import requests
from requests.structures import CaseInsensitiveDict

from escalade import __version__
from escalade.retry import parse_retry_after
from escalade.transports.adapter import BoundedAdapter
from escalade.transports.addresses import WebAddress, basic_login, secret_parts, take_apart
from escalade.transports.base import DeliveryError, Network, Receipt
from escalade.transports.peers import LookUp, system_look_up
from escalade.transports.text import one_line, shorten

RECORD_LIMIT = 1_000
REASON_LIMIT = 200
_TRY_AGAIN = (408, 425, 429)


class _Session(requests.Session):
    """A session that takes nothing from the environment and does not look at redirects."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.headers = CaseInsensitiveDict(
            {"User-Agent": f"Escalade/{__version__}", "Content-Type": "application/json", "Connection": "close"}
        )

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None, for any answer: requests would read the Location even where it is told not to follow it."""


class _Own(threading.local):
    """One session for each thread: it is costly to build, and requests does not promise that threads may share one."""

    def __init__(self) -> None:
        self.session = _Session()


_own = _Own()


def post(
    address: str,
    body: bytes,
    headers: Mapping[str, str],
    network: Network,
    *,
    hide: Iterable[str] = (),
    look_up: LookUp = system_look_up,
    shown: str | None = None,
) -> Receipt:
    """POST a JSON body and return the receipt of a 2xx answer; anything else raises DeliveryError.

    The class of the error: *retry* for a failed look-up, connection or TLS handshake and for 408, 425, 429 and
    5xx (Retry-After obeyed); *permanent* for other 4xx, redirects, bad and refused addresses; *unknown* where
    the connection broke or time ran out after the request was written. `hide` are texts that no record may
    show, besides the secret parts of the address; `shown` stands there for a body that nobody can read. A login in
    the address is sent as HTTP Basic.
    """
    web = take_apart(address)
    secrets = [*hide, *secret_parts(address)]
    text = body.decode("utf-8", "replace") if shown is None else shown
    request = _record(f"POST {web.shown} {text}", secrets)
    try:
        response = _send(web, body, headers, BoundedAdapter(network, look_up))
    except DeliveryError as fault:
        fault.request = request
        raise
    answer = _record(f"{response.status_code} {response.content.decode('utf-8', 'replace')}", secrets)
    if 200 <= response.status_code < 300:
        return Receipt(request, answer)
    raise _refusal(web, response.status_code, response.headers.get("Retry-After"), request, answer)


def _send(web: WebAddress, body: bytes, headers: Mapping[str, str], adapter: BoundedAdapter) -> requests.Response:
    """Send it by the thread's session, with nothing but the adapter to leave through."""
    session = _own.session
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    request = _prepare(session, web, body, headers)
    return session.send(request, allow_redirects=False)


def _prepare(
    session: requests.Session, web: WebAddress, body: bytes, headers: Mapping[str, str]
) -> requests.PreparedRequest:
    request = session.prepare_request(requests.Request("POST", web.bare, data=body))
    # requests spells escapes anew (%7E becomes ~), and a receiver may have signed its address as it gave it.
    request.url = web.bare
    login = basic_login(web)
    # Set here, since requests would repeat a header it refuses, a secret maybe, in its error.
    request.headers.update(({"Authorization": login} if login else {}) | dict(headers))
    return request


def _refusal(web: WebAddress, status: int, retry_after: str | None, request: str, answer: str) -> DeliveryError:
    """The error that an answer other than 2xx stands for."""
    said = f"{web.shown} answered {shorten(answer, REASON_LIMIT).rstrip('. ')}"
    if 300 <= status < 400:
        said += ": a redirect, which is not followed (enter the final address)"
    permanent = 300 <= status < 500 and status not in _TRY_AGAIN
    wait = None
    if retry_after is not None and not permanent:
        wait = parse_retry_after(retry_after, datetime.now(UTC))
    return DeliveryError(
        f"{said}.",
        permanent=permanent,
        limited=status == 429,
        retry_after=wait,
        request=request,
        answer=answer,
    )


def _record(text: str, secrets: Iterable[str]) -> str:
    """One line for the log of a try, short and without the secrets."""
    for secret in secrets:
        text = text.replace(secret, "...") if secret else text
    return shorten(one_line(text), RECORD_LIMIT)
