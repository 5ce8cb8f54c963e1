"""The pages: server-rendered, live with htmx, and whole without JavaScript."""

from typing import Any

from flask import Flask, g

from escalade import durations
from escalade.web.pages import (
    account,
    acknowledging,
    attempts,
    audit,
    checks,
    first_steps,
    history,
    incidents,
    login,
    login_links,
    logins,
    now,
    oncall,
    push,
    queue,
    setup,
    setup_edit,
    testing,
    theme,
    tokens,
    words,
)


def install(app: Flask) -> None:
    """Register every page."""
    words.install(app)
    app.jinja_env.filters["duration"] = durations.words
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.context_processor(reader)
    for module in (now, history, incidents, attempts, oncall, queue, setup, setup_edit, login, acknowledging, theme):
        app.register_blueprint(module.pages)
    for own in (first_steps, push, testing, checks):
        app.register_blueprint(own.pages)
    for access in (account, login_links, logins, tokens, audit):
        app.register_blueprint(access.pages)


def reader() -> dict[str, Any]:
    """Who reads the page, where that has been looked up (an error page must not ask the database again), and how."""
    return {"me": g.get("caller"), "theme": theme.chosen()}
