"""What SKIP LOCKED is for: workers that claim at once never wait for each other; plain FOR UPDATE makes them wait."""

import pytest

from escalade import db
from escalade.db import Database
from tests.interleavings.hands import Hands, claim
from tests.interleavings.scenes import opened


def test_two_claims_at_once_take_different_rows_and_neither_waits(database: Database, hands: Hands) -> None:
    opened(database)
    one = hands.call(claim, "one", 1, before="commit").stopped()
    two = hands.call(claim, "two", 1, before="commit").stopped()
    assert not two.waits()
    assert {row.id for row in one.done()}.isdisjoint({row.id for row in two.done()})


def test_with_plain_for_update_the_second_claim_waits_for_the_commit_of_the_first(
    database: Database, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = dict(db.queries())
    plain = known["claim"].replace(" skip locked", "")
    assert plain != known["claim"]
    monkeypatch.setattr(db, "queries", lambda: {**known, "claim": plain})
    opened(database)
    one = hands.call(claim, "one", 1, before="commit").stopped()
    two = hands.call(claim, "two", 1).blocked()
    assert not two.reached.is_set()
    assert len(one.done()) == 1
    assert {row.id for row in one.answer}.isdisjoint({row.id for row in two.done()})
