"""Whether this process lives (/healthz) and whether it can do its work (/readyz). Neither waits for a busy pool."""

from flask import Blueprint, Flask, Response, jsonify
from psycopg_pool import PoolClosed, PoolTimeout

from escalade import migrate
from escalade.db import Tx
from escalade.errors import Unavailable
from escalade.web.access import public
from escalade.web.context import context

blueprint = Blueprint("health", __name__)

POOL_SECONDS = 0.5


def install(app: Flask) -> None:
    """Put it on the application."""
    app.register_blueprint(blueprint)


@blueprint.get("/healthz")
@public
def healthz() -> tuple[Response, int]:
    """200 while the process serves and its threads go on. Never asks the database: a restart mends none."""
    return answer(context().health.broken())


@blueprint.get("/readyz")
@public
def readyz() -> tuple[Response, int]:
    """200 while pages can go out from here, else 503 with the reason."""
    return answer(context().health.idle_reason() or database_fault())


def database_fault() -> str | None:
    """Why the database cannot be used, or None."""
    try:
        with context().db.connection(POOL_SECONDS) as conn:
            missing = migrate.pending(conn)
            read_only = Tx(conn).value("is_read_only")
    except Unavailable as refusal:
        if isinstance(refusal.__cause__, PoolTimeout | PoolClosed):
            return f"all connections are busy, or the database is away: none came free within {POOL_SECONDS} s"
        return f"the database does not answer: {(str(refusal.__cause__).strip() or 'no reason given').splitlines()[0]}"
    if read_only:
        return "the database is read-only: a standby, it seems"
    return f"the schema is too old, {', '.join(missing)} missing; run: python app.py migrate" if missing else None


def answer(fault: str | None) -> tuple[Response, int]:
    """The state, for machines and for people who look."""
    if fault is None:
        return jsonify(status="ok"), 200
    return jsonify(error=fault, field=None), 503
