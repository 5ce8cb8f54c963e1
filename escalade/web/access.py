"""Who may do what: every route is closed unless it says that it is public, or which role it needs.

A caller is a person with a session cookie or a program with a token. A browser sends its cookie with whatever a
stranger's page makes it send, so unsafe requests with a cookie must come from a page of ours.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast
from urllib.parse import quote, urlsplit

from flask import Flask, Response, current_app, g, redirect, request

from escalade import api_tokens, audit, sessions
from escalade.errors import Forbidden, Refusal, Unauthenticated
from escalade.users import ROLES
from escalade.web.context import context

View = TypeVar("View", bound=Callable[..., object])

PUBLIC = "public"
# Who acts on a public route, as far as the audit knows, until the route has found out.
SOMEBODY = "somebody"
_MARK = "escalade_access"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `actor` is an e-mail or `token:NAME`; `kind` is session or token; a token has no user_id."""

    actor: str
    role: str
    user_id: int | None
    kind: str

    def may(self, role: str) -> bool:
        """Whether the caller has this role or a higher one."""
        return ROLES.index(self.role) >= ROLES.index(role)


def public(view: View) -> View:
    """Marks a route that is open to everybody, without a look at cookies: what it does rests on its own proof."""
    setattr(view, _MARK, PUBLIC)
    return view


def needs(role: str) -> Callable[[View], View]:
    """Marks a route that is for callers with this role or a higher one."""
    ROLES.index(role)

    def mark(view: View) -> View:
        setattr(view, _MARK, role)
        return view

    return mark


def need_of(app: Flask, endpoint: str) -> str | None:
    """What a route needs: public, a role, or None where nobody has said so."""
    return cast(str | None, getattr(app.view_functions[endpoint], _MARK, None))


def install(app: Flask) -> None:
    """Close the application."""
    app.before_request(guard)
    app.teardown_request(lambda fault: audit.act_as_nobody())


def guard() -> None:
    """Runs before every view. Raises Unauthenticated or Forbidden."""
    audit.act_as(SOMEBODY, request.remote_addr)
    if request.endpoint is None:
        return  # no such route or method, which the answer says
    need = need_of(current_app, request.endpoint)
    if need == PUBLIC:
        return
    if need is None:
        raise Forbidden("This route does not say who may use it.")
    who = caller()
    audit.act_as(who.actor, request.remote_addr)
    if who.kind == "session" and request.method not in SAFE_METHODS:
        check_origin()
    if not who.may(need):
        raise Forbidden(f"This needs the role {need}; yours is {who.role}.")


def caller() -> Caller:
    """Who asks. Raises Unauthenticated where nobody is logged in and no valid token came."""
    found = caller_or_none()
    if found is None:
        raise Unauthenticated("This token is not valid." if bearer() else "Log in, or send a token.")
    return found


def caller_or_none() -> Caller | None:
    """Who asks, or None; looked up once a request."""
    if "caller" not in g:
        g.caller = _by_token(cast(str, bearer())) if bearer() is not None else _by_session()
    return cast(Caller | None, g.caller)


def _by_token(secret: str) -> Caller | None:
    with context().db.read() as tx:
        token = api_tokens.use(tx, secret)
    return None if token is None else Caller(f"token:{token.name}", token.role, None, "token")


def _by_session() -> Caller | None:
    session_id = request.cookies.get(cookie_name())
    if not session_id:
        return None
    with context().db.read() as tx:
        user = sessions.find(tx, session_id)
    return None if user is None else Caller(user.email, user.role, user.id, "session")


def bearer() -> str | None:
    """The token in the Authorization header, or None."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


def check_origin(strict: bool = True) -> None:
    """Refuse a request that a page of somebody else made a browser send. Raises Forbidden.

    Browsers say where a request comes from in Sec-Fetch-Site, over HTTPS and to this machine; older ones, and those
    on plain HTTP, in Origin. `strict` also refuses what says neither.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        if site not in ("same-origin", "none"):
            raise Forbidden("This request comes from another site, so it was refused.")
        return
    base = context().config.base_url
    if origin is None:
        if strict:
            raise Forbidden(
                "This request says neither Sec-Fetch-Site nor Origin, so it cannot be told where it is from."
            )
    elif _origin(origin) != _origin(base):
        raise Forbidden(f"This request comes from {origin[:200]}, and pages of ours from {base} (ESCALADE_BASE_URL).")


def _origin(address: str) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None


def cookie_name() -> str:
    """The session cookie's name; over HTTPS one that no neighbouring host can set."""
    return "__Host-escalade" if _over_tls() else "escalade"


def _over_tls() -> bool:
    return context().config.base_url.startswith("https:")


def login(email: str, password: str, then: str = "/") -> Response:
    """Check the password and go on to `then`, logged in. Raises Unauthenticated, TooMany or Forbidden."""
    check_origin(strict=False)  # or a stranger's page could log somebody in as the stranger
    session_id = sessions.login(context().db.begin, email, password, *origin())
    return _entered(session_id, then)


def origin() -> tuple[str, str]:
    """The address a request comes from, and the browser it names."""
    return request.remote_addr or "", request.headers.get("User-Agent", "")


def person_id() -> int:
    """Whose session this is. Raises Forbidden for a token, which is nobody's."""
    user_id = caller().user_id
    if user_id is None:
        raise Forbidden("This is for people who are logged in; a token is nobody.")
    return user_id


def enter(user_id: int, then: str = "/") -> Response:
    """Log a person in who has proved who they are otherwise (a first-login, invitation or reset link)."""
    with context().db.begin() as tx:
        session_id = sessions.start(tx, user_id, *origin())
    return _entered(session_id, then)


def _entered(session_id: str, then: str) -> Response:
    response = cast(Response, redirect(safe_next(then), 303))
    response.set_cookie(
        cookie_name(),
        session_id,
        max_age=sessions.LONGEST_DAYS * 86400,
        path="/",
        secure=_over_tls(),
        httponly=True,
        samesite="Lax",
    )
    return response


def logout(then: str = "/login") -> Response:
    """End the session and go on to `then`."""
    session_id = request.cookies.get(cookie_name())
    if session_id:
        with context().db.begin() as tx:
            sessions.logout(tx, session_id)
            audit.record(tx, "logged out", audit.who())
    return left(then)


def left(then: str = "/login") -> Response:
    """On to `then`, with a session that is over."""
    response = cast(Response, redirect(safe_next(then), 303))
    response.delete_cookie(cookie_name(), path="/", secure=_over_tls(), httponly=True, samesite="Lax")
    return response


def onward(path: str) -> Response:
    """On to a page of ours, after something was done."""
    return cast(Response, redirect(safe_next(path), 303))


def safe_next(target: str | None) -> str:
    """The target where it is a path on this site, else the start page: a login must lead to no other site."""
    if not target or len(target) > 2_000 or re.match(r"/(?![/\\])", target) is None:
        return "/"
    # Browsers read a backslash as a slash, and leave out tabs and line ends.
    if "\\" in target or any(ord(char) < 33 or 127 <= ord(char) < 160 for char in target):
        return "/"
    return "/" if re.match(r"/(login|logout)\b", target) else target


def login_url() -> str:
    """Where to log in and come back: to this page, or for a part of a page to the page it is on."""
    page = request.full_path.rstrip("?") if request.method in ("GET", "HEAD") else "/"
    if "HX-Request" in request.headers:
        page = _path_of(request.headers.get("HX-Current-URL", "/"))
    page = safe_next(page)
    return "/login" if page == "/" else f"/login?next={quote(page, safe='/')}"


def _path_of(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:  # a bracket that is never closed, say
        return "/"
    return parts.path + (f"?{parts.query}" if parts.query else "")


def turned_away(refusal: Refusal) -> Response | None:
    """What a browser gets that is not logged in: the login page. None where the plain refusal is the answer."""
    if not isinstance(refusal, Unauthenticated) or request.endpoint is None:
        return None
    if need_of(current_app, request.endpoint) == PUBLIC or bearer() is not None:
        return None
    if "HX-Request" in request.headers:
        return Response(refusal.message, 401, {"HX-Redirect": login_url()}, mimetype="text/plain")
    if request.method in ("GET", "HEAD"):
        return cast(Response, redirect(login_url(), 303))
    return None
