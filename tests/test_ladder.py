"""Pure rules of the ladder, and that they ask neither clock nor database."""

import pytest

from escalade import ladder
from escalade.ladder import Contact, Policy, Reach, Step, Target

ALICE = Target("user", 1, "alice@example.com")


def contact(method: int | None = 7, rule: int | None = None, **more: object) -> Contact:
    """A verified webhook of Alice's, by this rule if any."""
    values = {"after_seconds": 0 if rule else None, "urgency": None, "verified": True} | more
    return Contact(1, ALICE.name, "responder", method, "webhook", rule_id=rule, **values)  # type: ignore[arg-type]


def test_a_target_is_written_as_the_configuration_writes_it() -> None:
    assert ALICE.label == "user:alice@example.com"


def test_a_ladder_for_one_target_reads_back_as_one_step() -> None:
    policy = ladder.read(ladder.single(ALICE, 300))
    assert policy == Policy(None, 0, (Step(300, (ALICE,)),))


def test_a_policy_is_read_in_its_order() -> None:
    stored = {
        "name": "default",
        "repeat": 2,
        "steps": [
            {"wait": 300, "targets": [{"kind": "schedule", "id": 4, "name": "primary"}]},
            {"wait": 600, "targets": []},
        ],
    }
    assert ladder.read(stored) == Policy("default", 2, (Step(300, (Target("schedule", 4, "primary"),)), Step(600, ())))


@pytest.mark.parametrize(
    ("step", "repeats_left", "reached", "wait"),
    [
        (1, 0, True, 300),
        (2, 0, True, 600),
        (2, 1, True, 600),
        (1, 1, False, 0),
        (2, 0, False, 0),
        (2, 1, False, 600),
    ],
)
def test_a_step_that_reaches_nobody_is_waited_out_only_where_the_round_repeats(
    step: int, repeats_left: int, reached: bool, wait: int
) -> None:
    policy = Policy("default", 1, (Step(300, ()), Step(600, ())))
    assert ladder.wait_after(policy, step, repeats_left, reached) == wait


def test_rules_that_fit_the_urgency_are_used_each_at_its_time() -> None:
    contacts = [
        contact(rule=1, after_seconds=0, urgency="high"),
        contact(8, rule=2, after_seconds=120),
        contact(9, rule=3, urgency="low"),
    ]
    assert ladder.pages_for(contacts, "high", "user:x") == [
        Reach("rule:1", "user:x", 0.0, method_id=7),
        Reach("rule:2", "user:x", 120.0, method_id=8),
    ]


def test_without_a_fitting_rule_each_contact_method_is_used_once_and_at_once() -> None:
    contacts = [contact(rule=1, after_seconds=60, urgency="low"), contact(rule=2, urgency="low"), contact(8)]
    assert ladder.pages_for(contacts, "high", "user:x") == [
        Reach("method:7", "user:x", 0.0, method_id=7),
        Reach("method:8", "user:x", 0.0, method_id=8),
    ]


def test_a_rule_on_an_unverified_contact_counts_as_none() -> None:
    contacts = [contact(rule=1, verified=False), contact(8)]
    assert [page.method_id for page in ladder.pages_for(contacts, "high", "user:x")] == [8]


def test_nobody_without_a_contact_method_is_reached() -> None:
    assert ladder.pages_for([contact(None)], "high", "user:x") == []


def test_once_each_keeps_the_earlier_time_and_the_first_target() -> None:
    pages = [
        Reach("rule:1", "user:first", 60.0, method_id=7),
        Reach("rule:1", "user:earlier", 0.0, method_id=7),
        Reach("rule:1", "user:last", 0.0, method_id=7),
        Reach("channel:2", "channel:ops", 0.0, channel_id=2),
    ]
    assert ladder.once_each(pages) == [pages[1], pages[3]]
