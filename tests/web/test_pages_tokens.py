"""Tokens of the API: made by admins, shown once, ended."""

import re
from typing import Any

import pytest

from tests import factories
from tests.web.screens import Screens
from tests.web.test_pages_account import audited


def make(screens: Screens, **form: str) -> tuple[str, str]:
    """A token by the page; the page and the secret."""
    page = screens.client("root", "admin").post(
        "/setup/tokens", **{"name": "ci", "role": "viewer", "days": "30"} | form
    )
    found = re.search(r"<code>([\w-]{40,})</code>", page.text)
    assert page.status_code == 200 and found, page.text
    return page.text, found[1]


def status(screens: Screens, secret: str) -> int:
    headers = {"Authorization": f"Bearer {secret}"}
    return screens.app.test_client().get("/api/v1/incidents", headers=headers).status_code


def test_a_token_is_shown_once_and_kept_as_a_hash(screens: Screens) -> None:
    _, secret = make(screens)
    assert status(screens, secret) == 200
    page = screens.client("root", "admin").get("/setup/tokens").text
    assert "ci" in page and "root@example.com" in page and secret not in page
    assert secret not in str(factories.run(screens.db, "select t::text from api_token t"))
    assert ("root@example.com", "token created", "ci") in audited(screens.db)


def test_a_token_ends_with_its_time(screens: Screens, clock: Any) -> None:
    _, secret = make(screens, days="30")
    _, forever = make(screens, name="for ever", days="")
    clock.pass_(days=30.1)
    assert (status(screens, secret), status(screens, forever)) == (401, 200)
    admin = screens.client("root", "admin")
    assert ">Over<" in re.sub(r"<svg.*?</svg>", "", admin.get("/setup/tokens").text)


def test_a_revoked_token_opens_nothing_with_the_next_request(screens: Screens) -> None:
    _, secret = make(screens)
    answer = screens.client("root", "admin").post("/setup/tokens/revoke", name="ci")
    assert answer.status_code == 303 and status(screens, secret) == 401
    assert ("root@example.com", "token revoked", "ci") in audited(screens.db)
    assert screens.client("root", "admin").post("/setup/tokens/revoke", name="ci").status_code == 404


@pytest.mark.parametrize(
    ("form", "code", "says"),
    [
        ({"name": ""}, 422, "needs a name"),
        ({"name": "x" * 101}, 422, "100 characters"),
        ({"role": "owner"}, 422, "viewer"),
        ({"days": "0"}, 422, "1 to"),
        ({"days": "soon"}, 422, "how long"),
        ({"days": "99999"}, 422, "1 to"),
        ({"name": "taken"}, 409, "already"),
    ],
)
def test_a_bad_form_comes_back_as_typed(screens: Screens, form: dict[str, str], code: int, says: str) -> None:
    make(screens, name="taken")
    answer = screens.client("root", "admin").post(
        "/setup/tokens", **{"name": "<b>ci</b>", "role": "viewer", "days": "30"} | form
    )
    assert answer.status_code == code and says in answer.text and 'role="alert"' in answer.text
    assert "<b>ci" not in answer.text


@pytest.mark.parametrize("role", ["viewer", "responder"])
def test_only_admins_see_or_make_tokens(screens: Screens, role: str) -> None:
    client = screens.client(role, role)
    assert client.get("/setup/tokens").status_code == 403
    assert client.post("/setup/tokens", name="x", role="admin", days="").status_code == 403
    assert factories.run(screens.db, "select count(*) from api_token") == [(0,)]
