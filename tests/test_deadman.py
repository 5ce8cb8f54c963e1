"""The dead man's switch is pinged while pages can go out, and only then."""

from escalade.deadman import Deadman
from escalade.health import Health
from tests.engines import NETWORK
from tests.receiver import receiver


def test_pinged_while_pages_can_go_out() -> None:
    with receiver() as outside:
        switch = Deadman(f"{outside.url}/ping", NETWORK, Health(engine_expected=False), every=0.05)
        switch.start()
        outside.wait(2, "/ping")
        switch.stop()
        assert not switch.thread.is_alive()


def test_silent_while_the_engine_does_not_go_round() -> None:
    with receiver() as outside:
        assert not Deadman(outside.url, NETWORK, Health(engine_expected=True)).ping()
        assert outside.arrived == []


def test_an_answer_that_does_not_come_stops_nothing() -> None:
    assert not Deadman("http://127.0.0.1:1/ping", NETWORK, Health(engine_expected=False)).ping()
