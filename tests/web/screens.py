"""What the tests of the pages share: an application on a real database, and people who are logged in."""

from dataclasses import dataclass, field

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from escalade import sessions
from escalade.config import Config
from escalade.db import Database
from escalade.health import Health
from escalade.tokens import AckLink, Signer
from escalade.web import create_app
from escalade.web.context import Context
from tests import factories

SIGNER = Signer(["a key for tests"])
OWN = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Screens:
    """The application, with alice (a responder) on call and bob next."""

    db: Database
    app: Flask
    health: Health
    people: dict[str, int] = field(default_factory=dict)

    def session(self, name: str = "alice", role: str = "responder") -> str:
        """A session of this person, who is made where they are not there."""
        if name not in self.people:
            known = factories.run(self.db, "select id from app_user where email = %s", f"{name}@example.com")
            self.people[name] = known[0][0] if known else factories.user(self.db, name, role)
        with self.db.begin() as tx:
            return sessions.start(tx, self.people[name])

    def client(self, name: str = "alice", role: str = "responder") -> "Person":
        """A browser without JavaScript in which this person is logged in."""
        client = self.app.test_client()
        client.set_cookie("escalade", self.session(name, role))
        return Person(client)

    def link(self, *incident_ids: int, user_id: int | None = None, channel_id: int | None = None) -> str:
        """The path of an acknowledge link."""
        return "/a/" + SIGNER.sign(AckLink(user_id, channel_id, incident_ids))


@dataclass
class Person:
    """A browser: sends what browsers send, and with `live` what htmx adds."""

    client: FlaskClient

    def get(self, path: str, **headers: str) -> TestResponse:
        """Open a page."""
        return self.client.get(path, headers=headers)

    def post(self, path: str, live: bool = False, **fields: str) -> TestResponse:
        """Press a button; `for_` is the field `for`."""
        form = {name.rstrip("_"): value for name, value in fields.items()}
        headers = OWN | ({"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1:8000/"} if live else {})
        return self.client.post(path, data=form, headers=headers)


def make_screens(db: Database, config: Config) -> Screens:
    """The application on this database, with an engine that is said to run elsewhere."""
    health = Health(engine_expected=False)
    app = create_app(Context(config, db, SIGNER, health))
    app.testing = True
    app.config["PROPAGATE_EXCEPTIONS"] = False
    return Screens(db, app, health)


def engine_ran(db: Database, ago: float = 0) -> None:
    """An engine that last went round so many seconds ago."""
    factories.run(
        db,
        "insert into engine_instance values ('elsewhere', now(), now() - make_interval(secs => %s))"
        " on conflict (owner) do update set last_tick_at = excluded.last_tick_at",
        ago,
    )


def fail(db: Database, incident_id: int, error: str = "connection refused") -> int:
    """Make the first page of an incident one that has failed for good; its id."""
    rows = factories.run(
        db,
        "update notification_attempt set status = 'FAILED', finished_at = now(), tries = 8, last_error = %s"
        " where id = (select min(id) from notification_attempt where incident_id = %s and kind = 'PAGE') returning id",
        error,
        incident_id,
    )
    return int(rows[0][0])
