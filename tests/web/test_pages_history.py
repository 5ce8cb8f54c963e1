"""The list of every incident."""

import re

import pytest

from escalade import incidents
from tests import factories
from tests.web.screens import Person, Screens


@pytest.fixture
def ids(screens: Screens) -> list[int]:
    """Sixty incidents, every second one resolved."""
    service = factories.ladder(screens.db, "http://127.0.0.1:9/hook")
    found = [factories.open_incident(screens.db, service, str(number)).id for number in range(60)]
    for number in found[::2]:
        with screens.db.begin() as tx:
            incidents.resolve(tx, number, "bob@example.com")
    return found


@pytest.fixture
def vera(screens: Screens, ids: list[int]) -> Person:
    return screens.client("vera", "viewer")


def shown(text: str) -> list[int]:
    return [int(number) for number in re.findall(r'<li id="past-(\d+)"', text)]


def test_the_newest_come_first_and_the_older_on_the_next_page(vera: Person, ids: list[int]) -> None:
    text = vera.get("/incidents").text
    assert shown(text) == ids[:9:-1] and ">Newest</a>" not in text
    older = re.search(r'href="([^"]+)">Older</a>', text)
    assert older
    text = vera.get(older[1].replace("&amp;", "&")).text
    assert shown(text) == ids[9::-1] and ">Older</a>" not in text and ">Newest</a>" in text


def test_a_filter_by_status_is_kept_from_page_to_page(screens: Screens, vera: Person, ids: list[int]) -> None:
    text = vera.get("/incidents?status=RESOLVED").text
    assert shown(text) == ids[::2][::-1] and 'aria-current="true">Resolved</a>' in text
    assert "by bob@example.com" in text
    assert shown(vera.get(f"/incidents?status=TRIGGERED&before={ids[3]}").text) == [ids[1]]
    assert "None." in vera.get("/incidents?status=ACKNOWLEDGED").text
    factories.run(screens.db, "update incident set status = 'TRIGGERED', resolved_at = null, resolved_by = null")
    assert f"status=TRIGGERED&amp;before={ids[10]}" in vera.get("/incidents?status=TRIGGERED").text


@pytest.mark.parametrize("query", ["status=nonsense", "before=x", f"before={10**30}"])
def test_what_cannot_be_read_is_as_if_it_were_not_there(vera: Person, ids: list[int], query: str) -> None:
    assert shown(vera.get(f"/incidents?{query}").text) == ids[:9:-1]


def test_a_number_below_all_shows_none(vera: Person) -> None:
    assert "None." in vera.get(f"/incidents?before=-{10**30}").text
    assert "None." in vera.get("/incidents?before=0").text


def test_it_leads_to_reopen(screens: Screens, vera: Person, ids: list[int]) -> None:
    assert f'href="/incidents/{ids[-2]}"' in vera.get("/incidents").text
    assert ">Reopen</button>" in screens.client().get(f"/incidents/{ids[-2]}").text
    assert '<a href="/incidents" >Incidents</a>' in vera.get("/").text
