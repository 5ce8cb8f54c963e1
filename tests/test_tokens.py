"""The acknowledge link cannot be forged, altered or kept for ever, and stays short."""

import time
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escalade.tokens import AckLink, Altered, Expired, Signer, digest, new_secret

SIGNER = Signer(["first key"])
IDS = st.lists(st.integers(1, 10**9), min_size=1, max_size=30, unique=True).map(lambda ids: tuple(sorted(ids)))


@given(IDS, st.integers(1, 10**9), st.booleans())
def test_a_link_says_what_was_signed(ids: tuple[int, ...], number: int, person: bool) -> None:
    link = AckLink(number if person else None, None if person else number, ids)
    assert SIGNER.read(SIGNER.sign(link)) == link


@given(st.data())
def test_any_altered_character_is_refused(data: st.DataObject) -> None:
    token = SIGNER.sign(AckLink(3, None, (7, 8, 9, 12)))
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.characters().filter(lambda letter: letter != token[place]))
    altered = token[:place] + letter + token[place + 1 :]
    with pytest.raises(Altered):
        SIGNER.read(altered)


def test_every_spelling_of_the_last_letter_but_one_is_refused() -> None:
    token = SIGNER.sign(AckLink(3, None, (7,)))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    accepted = []
    for letter in letters:
        try:
            SIGNER.read(token[:-1] + letter)
            accepted.append(letter)
        except Altered:
            pass
    assert accepted == [token[-1]]


@given(st.text())
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Altered):
        SIGNER.read(text)


def test_a_link_is_dead_after_a_day() -> None:
    token = SIGNER.sign(AckLink(3, None, (7,)))
    later = time.time() + 24 * 3600 + 5
    with patch("itsdangerous.timed.time.time", return_value=later), pytest.raises(Expired):
        SIGNER.read(token)


def test_an_old_key_still_verifies_and_a_foreign_one_does_not() -> None:
    token = Signer(["old key"]).sign(AckLink(3, None, (7,)))
    assert Signer(["new key", "old key"]).read(token).incident_ids == (7,)
    with pytest.raises(Altered):
        Signer(["new key"]).read(token)


def test_the_link_of_a_thousand_incidents_stays_short() -> None:
    assert len(SIGNER.sign(AckLink(3, None, tuple(range(500_000, 501_000))))) < 120


@pytest.mark.parametrize("runs", ["1x99999999999", "1x10001", "1x9999_2x2", "_".join("1" * 10_001), "1x" + "9" * 5_000])
def test_a_few_letters_never_stand_for_more_than_a_message_holds(runs: str) -> None:
    with pytest.raises(Altered):
        SIGNER.read(SIGNER._signer.sign(f"u3-{runs}").decode())


def test_ten_thousand_incidents_are_read() -> None:
    link = AckLink(3, None, tuple(range(7, 10_007)))
    assert SIGNER.read(SIGNER.sign(link)) == link


def test_secrets_are_long_and_only_their_digest_is_kept() -> None:
    assert new_secret() != new_secret()
    assert len(new_secret()) >= 43
    assert len(digest("\ud800")) == 64
