"""Token buckets: a burst, then the rate, for each key alone."""

from escalade.buckets import Buckets


def test_a_burst_and_then_the_rate() -> None:
    now = [0.0]
    buckets = Buckets(rate=2, burst=3, clock=lambda: now[0])
    assert [buckets.take(1) for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 0.5]
    now[0] = 0.25
    assert buckets.take(1) == 0.25
    now[0] = 0.5
    assert [buckets.take(1), buckets.take(1)] == [0.0, 0.5]


def test_keys_have_buckets_of_their_own() -> None:
    buckets = Buckets(rate=1, burst=1, clock=lambda: 0.0)
    assert [buckets.take(1), buckets.take(2), buckets.take(1)] == [0.0, 0.0, 1.0]


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    now = [0.0]
    buckets = Buckets(rate=1, burst=2, clock=lambda: now[0])
    buckets.take(1)
    now[0] = 1000.0
    assert [buckets.take(1) for _ in range(3)] == [0.0, 0.0, 1.0]
