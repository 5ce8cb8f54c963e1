"""Evenings on call, from the alert to the end, as those who were there would tell them."""

from datetime import timedelta

from escalade import incidents, opening
from escalade.inbound.base import Event
from escalade.opening import Done
from tests import factories
from tests.acting import do, person
from tests.stories.telling import Story


def test_bob_is_paged_by_mail_alice_acknowledges_from_her_phone_and_nobody_else_hears_of_it(story: Story) -> None:
    alice, bob = story.person("alice"), story.person("bob", phone=False, mail=True)
    charlie = story.person("charlie")
    api = story.service((5, [("user", alice)]), (5, [("user", bob)]), (5, [("user", charlie)]), repeat=3)
    done = story.alert(api)
    assert story.on_phone("alice") == ["triggered"]
    story.minutes_pass(4)
    assert story.mails_to("bob") == []
    story.minutes_pass(1)
    [subject] = story.mails_to("bob")
    assert "Disk full" in subject
    [answer] = story.taps_acknowledge("alice")
    assert (answer.changed, answer.incident.acknowledged_by) == (True, "alice@example.com")
    story.minutes_pass(30)
    story.jump(days=3)
    assert story.on_phone("alice") == story.on_phone("charlie") == []
    assert len(story.mails_to("bob")) == 1
    assert story.incident(done).status == "ACKNOWLEDGED"


def test_everything_is_ignored_the_ladder_repeats_is_exhausted_and_the_ops_channel_is_told(story: Story) -> None:
    alice, bob = story.person("alice"), story.person("bob")
    ops = factories.channel(story.database, f"{story.phones.url}/ops")
    factories.fallback(story.database, "channel", ops, "ops")
    api = story.service((5, [("user", alice)]), (5, [("user", bob)]), repeat=1)
    done = story.alert(api)
    story.minutes_pass(19)
    assert story.on_phone("alice") == story.on_phone("bob") == ["triggered"] * 2
    assert story.on_phone("ops") == []
    assert story.incident(done).exhausted_at is None
    story.minutes_pass(1)
    assert story.on_phone("ops") == ["exhausted"]
    assert story.incident(done).exhausted_at is not None
    story.minutes_pass(60)
    assert story.on_phone("alice") == story.on_phone("bob") == story.on_phone("ops") == []
    assert story.acts("bob", incidents.acknowledge, done).changed


def test_acknowledged_but_not_resolved_the_timeout_starts_it_again(story: Story) -> None:
    alice, bob = story.person("alice"), story.person("bob")
    api = story.service((5, [("user", alice)]), (5, [("user", bob)]), ack_timeout_seconds=1800)
    done = story.alert(api)
    story.minutes_pass(1)
    story.taps_acknowledge("alice")
    story.minutes_pass(29)
    assert story.on_phone("alice") == ["triggered"]
    story.minutes_pass(1)
    assert story.on_phone("alice") == ["triggered"], "it starts again with her"
    story.minutes_pass(5)
    assert story.on_phone("bob") == ["triggered"]
    assert "ack_timed_out" in factories.events(story.database, story.incident(done).id)
    story.acts("bob", incidents.resolve, done)
    story.jump(hours=2)
    assert story.on_phone("alice") == story.on_phone("bob") == []


def test_snoozed_till_morning(story: Story) -> None:
    alice, bob = story.person("alice"), story.person("bob")
    api = story.service((5, [("user", alice)]), (5, [("user", bob)]))
    done = story.alert(api)
    assert story.on_phone("alice") == ["triggered"]
    story.acts("alice", incidents.snooze, done, 8 * 3600)
    story.minutes_pass(10)
    story.alert(api)
    story.jump(hours=7, minutes=49)
    assert story.on_phone("alice") == story.on_phone("bob") == []
    story.minutes_pass(1)
    assert story.on_phone("alice") == ["triggered"]
    assert story.on_phone("bob") == [], "the round begins at step one, not with everybody"
    story.minutes_pass(5)
    assert story.on_phone("bob") == ["triggered"]


def test_an_alert_that_flaps_pages_each_time_it_comes_back_but_not_while_its_key_is_silent(story: Story) -> None:
    alice = story.person("alice")
    api = story.service((5, [("user", alice)]))
    for _ in range(3):
        story.alert(api)
        story.alert(api)
        story.minutes_pass(1)
        assert story.on_phone("alice") == ["triggered"]
        story.alert(api, "resolve")
    done = story.alert(api)
    assert story.on_phone("alice") == ["triggered"]
    story.acts("alice", incidents.snooze, done, 3600)
    for _ in range(3):
        story.alert(api, "resolve")
        story.minutes_pass(1)
        story.alert(api)
    assert story.on_phone("alice") == []
    story.jump(minutes=58)
    assert story.on_phone("alice") == ["triggered"], "still open when the silence ends"


def test_alice_swaps_with_bob_for_two_hours(story: Story) -> None:
    alice, bob = story.person("alice"), story.person("bob")
    primary = factories.schedule(story.database, [alice])
    api = story.service((60, [("schedule", primary)]))
    now = factories.now(story.database)
    factories.insert(
        story.database,
        "override",
        schedule_id=primary,
        kind="replace",
        user_id=bob,
        replaces_id=alice,
        start_at=now + timedelta(hours=1),
        end_at=now + timedelta(hours=3),
        source="person",
        created_by="alice@example.com",
    )
    for key, who in (("before", "alice"), ("during", "bob"), ("after", "alice")):
        done = story.alert(api, key=key)
        assert story.on_phone(who) == ["triggered"]
        story.acts(who, incidents.resolve, done)
        story.jump(hours=2)
    assert story.on_phone("alice") == story.on_phone("bob") == []


def test_slack_is_down_the_mail_still_goes_and_where_nothing_goes_the_ladder_goes_on_at_once(story: Story) -> None:
    alice = story.person("alice", phone=False, mail=True)
    bob = story.person("bob")
    slack = factories.channel(story.database, f"{story.phones.url}/services/T0/B0/room", "slack", "room")
    story.phones.answer = lambda arrived: 404 if "services" in arrived.path else 200
    api = story.service((30, [("channel", slack), ("user", alice)]), (30, [("channel", slack)]), (30, [("user", bob)]))
    done = story.alert(api)
    assert len(story.mails_to("alice")) == 1
    assert story.incident(done).step == 1, "Alice was told, so she has her half hour"
    story.minutes_pass(30)
    assert story.on_phone("bob") == ["triggered"], "nothing of step two arrived, so step three came at once"
    assert factories.events(story.database, story.incident(done).id).count("step_hurried") == 1


def test_the_resolve_closes_it_and_those_who_were_paged_hear_of_it(story: Story) -> None:
    alice, bob = story.person("alice", updates=True), story.person("bob", updates=True)
    charlie = story.person("charlie")
    api = story.service((5, [("user", alice), ("user", charlie)]), (5, [("user", bob)]))
    done = story.alert(api)
    assert story.on_phone("alice") == story.on_phone("charlie") == ["triggered"]
    story.minutes_pass(1)
    story.taps_acknowledge("alice")
    story.minutes_pass(1)
    assert story.on_phone("alice") == ["acknowledged"]
    assert story.alert(api, "resolve").action == "resolved"
    assert story.on_phone("alice") == ["resolved"]
    assert story.on_phone("bob") == [], "he was never told of the problem"
    assert story.on_phone("charlie") == [], "and he asked for no updates"
    assert story.incident(done).status == "RESOLVED"
    story.alert(api)
    assert story.on_phone("alice") == ["triggered"], "the next time it is a new problem"


def test_a_person_calls_another_who_hands_it_on(story: Story) -> None:
    for name in ("alice", "bob"):
        story.person(name)
    target = person(story.database, "alice")
    incident = do(story.database, opening.trigger_target, target, Event("trigger", "Call me"), "bob@example.com")
    done = Done(incident.id, "triggered")
    assert story.on_phone("alice") == ["triggered"]
    story.acts("alice", incidents.reassign, done, person(story.database, "bob"))
    assert story.on_phone("bob") == ["triggered"]
    story.acts("bob", incidents.acknowledge, done)
    story.jump(hours=1)
    assert story.on_phone("alice") == story.on_phone("bob") == []
