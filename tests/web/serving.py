"""The application under test: a client that carries a token, logins, and a server on a real socket."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import make_server
from werkzeug.test import TestResponse

from escalade import api_tokens, sessions
from escalade.config import Config
from escalade.db import Database
from escalade.health import Health
from escalade.tokens import Signer
from escalade.web import create_app
from escalade.web.context import Context


def make_app(db: Database, config: Config, health: Health | None = None) -> Flask:
    """The application on this database; no engine is expected unless a health says otherwise."""
    return create_app(Context(config, db, Signer(["a key for tests"]), health or Health(engine_expected=False)))


def token(db: Database, role: str = "responder") -> str:
    """A token with this role, named after it."""
    with db.begin() as tx:
        return api_tokens.create(tx, role, role)


@dataclass
class Api:
    """A program with a token: `get` and the like give the answer, `json` its body where the status is as expected."""

    client: FlaskClient
    secret: str

    def call(self, method: str, path: str, **more: Any) -> TestResponse:
        """One request."""
        headers = {"Authorization": f"Bearer {self.secret}", **more.pop("headers", {})}
        return self.client.open(f"/api/v1{path}", method=method, headers=headers, **more)

    def get(self, path: str, status: int = 200) -> Any:
        """What the API says."""
        return self._body(self.call("GET", path), status)

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        """Do something; what it did."""
        more = {} if body is None else {"json": body}
        return self._body(self.call("POST", path, **more), status)

    def _body(self, response: TestResponse, status: int) -> Any:
        assert response.status_code == status, response.text
        return response.get_json()


def api(db: Database, config: Config, role: str = "responder") -> Api:
    """A program that may do what this role may."""
    return Api(make_app(db, config).test_client(), token(db, role))


def log_in(client: FlaskClient, db: Database, user_id: int, cookie: str = "escalade") -> str:
    """Give a browser the session of a person; its id."""
    with db.begin() as tx:
        session_id = sessions.start(tx, user_id)
    client.set_cookie(cookie, session_id, domain="localhost")
    return session_id


@contextmanager
def serving(app: Flask) -> Iterator[str]:
    """The application on a real socket; its address."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
