"""Retries: the delay grows, is spread, is capped and is never shorter than what the receiver asked for."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escalade.retry import delay, parse_retry_after

NOW = datetime(1994, 11, 6, 8, 49, tzinfo=UTC)
examples = settings(deadline=None, max_examples=200, database=None)
jitters = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("tries", "half", "full"),
    [(1, 2.5, 5), (2, 5, 10), (3, 10, 20), (4, 20, 40), (5, 40, 80), (6, 80, 160), (7, 150, 300), (8, 150, 300)],
)
def test_the_delay_doubles_up_to_five_minutes(tries: int, half: float, full: float) -> None:
    assert delay(tries, 0) == half
    assert delay(tries, 0.5) == (half + full) / 2
    assert delay(tries, 1 - 1e-9) == pytest.approx(full)


@examples
@given(st.integers(-5, 10**9), jitters)
def test_any_count_gives_between_2_5_and_300_seconds(tries: int, jitter: float) -> None:
    assert 2.5 <= delay(tries, jitter) <= 300


def test_a_count_below_one_is_the_first_try() -> None:
    assert delay(0, 0.5) == delay(-1, 0.5) == delay(1, 0.5)


@examples
@given(st.integers(1, 12), jitters, st.floats(0, 3600))
def test_k054_the_retry_is_not_before_the_time_asked_for(tries: int, jitter: float, asked: float) -> None:
    assert delay(tries, jitter, asked) == max(asked, delay(tries, jitter))


@pytest.mark.parametrize("asked", [3600.5, 1e9, float("inf")])
def test_no_more_than_an_hour_is_obeyed(asked: float) -> None:
    assert delay(1, 0.5, asked) == 3600


@pytest.mark.parametrize("asked", [None, 0, -1, float("-inf"), float("nan")])
def test_a_request_that_asks_for_nothing_changes_nothing(asked: float | None) -> None:
    assert delay(3, 0.5, asked) == 15


@pytest.mark.parametrize("jitter", [-0.1, 1.1, float("nan")])
def test_a_jitter_out_of_range_is_refused(jitter: float) -> None:
    with pytest.raises(ValueError, match="jitter"):
        delay(1, jitter)


@pytest.mark.parametrize(("value", "seconds"), [("0", 0), ("120", 120), (" 7 ", 7), ("1.5", 1.5), ("9" * 18, 1e18)])
def test_k054_retry_after_in_seconds(value: str, seconds: float) -> None:
    assert parse_retry_after(value, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 09:49:37 +0100",
        "Sun, 06 Nov 1994 08:49:37 -0000",
    ],
)
def test_k054_retry_after_as_a_date(value: str) -> None:
    assert parse_retry_after(value, NOW) == 37


def test_now_may_be_in_any_zone() -> None:
    assert parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", NOW.astimezone(ZoneInfo("Asia/Tokyo"))) == 37


def test_a_date_in_the_past_is_now() -> None:
    assert parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", NOW + timedelta(days=1)) == 0


@pytest.mark.parametrize(
    "value",
    ["", " ", "soon", "-1", "+5", "1e3", "inf", "nan", "0x10", "1_000", "٣", "²", "5 s", "1,5", "9" * 5000]
    + ["Sun, 06 Nov 1994", "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 +999999", "Mon 5", "1:2:3"],
)
def test_nonsense_is_none(value: str) -> None:
    assert parse_retry_after(value, NOW) is None


headers = st.text() | st.text("0123456789:+-,. SunNovGMT", max_size=40) | st.from_regex(r"\w{3}, \d+ Nov \d+ .*")


@examples
@given(headers)
def test_any_header_gives_seconds_or_none(value: str) -> None:
    found = parse_retry_after(value, NOW)
    assert found is None or 0 <= found < float("inf")
