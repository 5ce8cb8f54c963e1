"""Light or dark, without a script."""

import pytest

from tests.web.screens import Screens


def test_a_chosen_theme_stays(screens: Screens) -> None:
    alice = screens.client()
    assert "data-theme" not in alice.get("/").text
    answer = alice.post("/theme", theme="dark", back="/attempts?status=FAILED")
    assert (answer.status_code, answer.location) == (303, "/attempts?status=FAILED#theme")
    page = alice.get("/attempts").text
    assert '<html lang="en" data-theme="dark">' in page
    assert '<meta name="color-scheme" content="dark">' in page
    assert '<html lang="en" data-theme="dark">' in alice.get("/login").text
    alice.post("/theme", theme="auto")
    assert "data-theme" not in alice.get("/").text


@pytest.mark.parametrize("value", ["pink", "", 'dark" onload=x', "DARK"])
def test_no_other_theme_is_taken(screens: Screens, value: str) -> None:
    alice = screens.client()
    assert alice.post("/theme", theme=value).status_code == 422
    alice.client.set_cookie("theme", value)
    assert "data-theme" not in alice.get("/").text


def test_the_switch_leads_to_no_other_site(screens: Screens) -> None:
    assert screens.client().post("/theme", theme="light", back="//evil.example").location == "/#theme"


def test_the_page_after_a_form_leads_back_to_the_start(screens: Screens) -> None:
    alice = screens.client()
    assert 'name="back" value="/attempts"' in alice.get("/attempts").text
    refused = alice.post("/incidents", title="")
    assert refused.status_code == 422 and 'name="back"' not in refused.text.split("<footer")[1]
