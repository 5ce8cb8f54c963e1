"""What a page looks like when it cannot be shown."""

import pytest

from escalade.web.pages import regions
from tests.web.screens import Screens


def test_without_a_database_it_says_so(screens: Screens) -> None:
    alice = screens.client()
    screens.db.close()
    for path in ("/", "/incidents/1", screens.link(1, user_id=1)):
        answer = alice.get(path)
        assert answer.status_code == 503 and "Retry-After" in answer.headers
        assert "<h1 data-reason>The database is away" in answer.text


def test_a_fault_of_ours_names_its_line_in_the_log(screens: Screens, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(regions, "now", broken)
    answer = screens.client().get("/")
    assert answer.status_code == 500 and "as request " in answer.text and "secret" not in answer.text
    assert 'href="/"' in answer.text


def test_an_unknown_page_leads_home(screens: Screens) -> None:
    answer = screens.client().get("/nowhere")
    assert answer.status_code == 404 and "There is nothing at this address." in answer.text
    assert '<a class="button" href="/">Now</a>' in answer.text
