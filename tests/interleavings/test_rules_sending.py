"""The rules 14, 15 and 18 to 22 of the queue: what is sent, when a send may begin, and what its result may change."""

import time
from collections.abc import Mapping

import pytest

from escalade import attempts, delivery, dispatch, engine, incidents, senders
from escalade.attempts import Room
from escalade.db import Database, Session
from escalade.delivery import Job, Sent
from escalade.transports import Receipt
from tests import factories
from tests.clock import MovedClock
from tests.engines import make_engine
from tests.interleavings.hands import Hands, claim, settle
from tests.interleavings.scenes import attempt, opened
from tests.interleavings.wrong import Code, Play, Query
from tests.rows import bare_incident, rows, take

ALICE = "alice@example.com"


class Noting:
    """A transport that notes what is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, message, network) -> Receipt:
        self.sent.append(message.key)
        return Receipt()


def engine_with(database: Database, count: int = 8, transport: Noting | None = None, **more) -> engine.Engine:
    """An engine whose senders do nothing until they are asked to."""
    transports: Mapping = {"webhook": transport or Noting()}
    return make_engine(database.url, senders=count, transports=transports, **more)


def claimed_jobs(database: Database, made: engine.Engine) -> list[Job]:
    """What one round of this engine hands to its senders."""
    session = Session(database.url)
    try:
        made.tick(session)
    finally:
        session.close()
    return made.senders.unbegun()


def stalled_sender(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A sender stands still with a page in its hands; the lease runs out, and somebody acknowledges."""
    incident, transport = opened(database, people=1), Noting()
    made = engine_with(database, transport=transport)
    [job] = claimed_jobs(database, made)
    clock.pass_(seconds=30)
    with database.begin() as tx:
        attempts.reap(tx)
        answer = incidents.acknowledge(tx, incident.id, ALICE)
    made.senders._send(job._replace(start_by=job.start_by - 30))
    return ["a page was sent after an answer that did not name it"] * (transport.sent != [] and not answer.in_flight)


def late_start(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A claim may have been made long before its rows come to a sender."""
    opened(database, people=1)
    made = engine_with(database)
    asked_at = time.monotonic()
    [job] = claimed_jobs(database, made)
    latest = time.monotonic() + made.settings.lease - made.settings.deadline
    assert job.start_by >= asked_at + made.settings.lease - made.settings.deadline - 1
    return ["a send may begin that could outlive its lease"] * (job.start_by > latest)


def given_back(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A row is given back unsent."""
    opened(database, people=1)
    with database.read() as tx:
        [row] = claim(tx)
        settle(tx, [row], "RELEASE")
    return ["a try was used up without a send"] * (attempt(database, row.id)["tries"] != 0)


@pytest.mark.parametrize(
    "scene, wrong, reports",
    [
        (stalled_sender, Code(senders.Senders, "_send", "started > job.start_by", "False"), "did not name it"),
        (late_start, Code(dispatch.Dispatch, "_send", " - self.settings.deadline", ""), "outlive its lease"),
        (given_back, Query("settle", "l.outcome = 'RELEASE' or l.outcome = 'LIMITED'", "l.outcome = 'LIMITED'"), "try"),
    ],
    ids=["begins late", "counts from elsewhere", "uses up a try"],
)
def test_rule_14_a_send_begins_only_while_it_can_end_within_its_lease(play: Play, scene, wrong, reports: str) -> None:
    play(scene, wrong, reports=reports)


def late_success(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Successes come back after the reap: of a page that waits, one that failed, and one that was cancelled."""
    incident = opened(database, people=2)
    with database.read() as tx:
        taken = claim(tx)
    factories.run(database, "update notification_attempt set max_tries = 1 where id = %s", taken[0].id)
    clock.pass_(seconds=30)
    with database.begin() as tx:
        attempts.reap(tx)
        incidents.acknowledge(tx, incident.id, ALICE)
    with database.read() as tx:
        settle(tx, taken, "DELIVERED")
    found = [attempt(database, row.id)["status"] for row in taken]
    return [f"what was delivered is recorded as {found}"] * (found != ["DELIVERED"] * 2)


@pytest.mark.parametrize("status", ["FAILED", "CANCELLED"])
def test_rule_15_a_late_success_counts_whatever_was_thought_of_the_row(play: Play, status: str) -> None:
    others = "('PENDING', 'FAILED', 'CANCELLED')"
    play(late_success, Query("settle", others, others.replace(f", '{status}'", "")), reports="is recorded as")


def settled_again(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """The connection broke as results were recorded, so they are recorded again: one page failed, one was sent."""
    incident = opened(database, people=2)
    with database.read() as tx:
        failed, sent = claim(tx)
        settle(tx, [sent], "DELIVERED")
        settle(tx, [failed], "FAILED")
        before = factories.statuses(database, incident.id), factories.events(database, incident.id)
        again = settle(tx, [failed], "FAILED") + settle(tx, [sent], "RETRY")
    after = factories.statuses(database, incident.id), factories.events(database, incident.id)
    found = ["to record it again changed something"] * (before != after)
    return found + ["what is closed is called lost"] * any(row.lost for row in again)


STALE = "t.id is null or t.claim_seq <> o.seq or t.lease_owner is distinct from %(owner)s as lost"


@pytest.mark.parametrize(
    "wrong, reports",
    [
        (Query("settle", "t.status = 'IN_FLIGHT' or o.outcome", "true or o.outcome"), "changed something"),
        (Query("stale_outcomes", STALE, "true as lost"), "called lost"),
    ],
    ids=["recorded twice", "all that is refused is lost"],
)
def test_rule_18_results_may_be_recorded_again(play: Play, wrong: Query, reports: str) -> None:
    play(settled_again, wrong, reports=reports)


def asked_again(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """The answer to an acknowledgement was lost, so it is asked for again."""
    incident = opened(database)
    with database.read() as tx:
        claim(tx, n=1)
    with database.begin() as tx:
        first = incidents.acknowledge(tx, incident.id, ALICE)
        second = incidents.acknowledge(tx, incident.id, ALICE)
    return ["the second answer does not name what is in the air"] * (first.in_flight != second.in_flight)


def test_rule_18_a_repeated_acknowledgement_names_what_is_in_flight_too(play: Play) -> None:
    wrong = Code(incidents, "acknowledge", ", in_flight=in_flight(tx, incident_id)", "")
    play(asked_again, wrong, reports="does not name")


def stale_result(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A result comes back after its lease ran out and the same process has claimed the row again."""
    opened(database, people=1)
    with database.read() as tx:
        stale = claim(tx)
    clock.pass_(seconds=30)
    with database.read() as tx:
        attempts.reap(tx)
        [fresh] = claim(tx)
        settle(tx, stale, "RETRY")
    return ["a stale result changed a row in flight"] * (attempt(database, fresh.id)["status"] != "IN_FLIGHT")


def test_rule_18_a_result_of_an_earlier_claim_is_refused(play: Play) -> None:
    play(stale_result, Query("settle", "t.claim_seq = o.seq and "), reports="stale result")


def lost_answer(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """The answer to a claim was lost with its connection; an old result of one of its rows is still in hand."""
    opened(database)
    made = engine_with(database)
    owner = made.dispatch.owner
    with database.read() as tx:
        [old, _] = claim(tx, owner)
    clock.pass_(seconds=30)
    with database.read() as tx:
        attempts.reap(tx)
        claim(tx, owner)
    job = Job(1, "high", None, (old,), "webhook", "webhook:a", 0.0)  # type: ignore[arg-type]  # nothing is sent of it
    made.dispatch.jobs[1] = job
    made.senders.results.put(Sent(job, 0.0, 0.0))
    made.stopping.set()
    session = Session(database.url)
    made._serve(session)
    session.close()
    found = factories.run(database, "select count(*) from notification_attempt where status = 'IN_FLIGHT'")
    return [f"{found[0][0]} rows are left to their leases"] * (found != [(0,)])


# In place of what the engine knows: every row there is.
EVERY_ROW = "list(session.conn.execute('select id, claim_seq from notification_attempt'))"


@pytest.mark.parametrize(
    "wrong",
    [
        Query("recover", "k.id = t.id and k.seq = t.claim_seq", "k.id = t.id"),
        Code(engine.Engine, "_serve", "self.dispatch.known()", EVERY_ROW),
    ],
    ids=["by id alone", "not at all"],
)
def test_rule_19_a_claim_whose_answer_was_lost_is_given_back_at_once(play: Play, wrong) -> None:
    play(lost_answer, wrong, reports="left to their leases")


def overfull(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """One place is left for a destination of which five pages are due, and three for any other."""
    rows(database, 5, destination="webhook:slow")
    rows(database, 5, destination="webhook:new")
    taken = [row.destination for row in take(database, 100, Room([], [], {"webhook:slow": 1}, 3))]
    found = {name: taken.count(name) for name in set(taken)}
    return [f"one claim took {found}"] * (found != {"webhook:slow": 1, "webhook:new": 3})


@pytest.mark.parametrize(
    "instead", ["coalesce(f.free, 100)", "coalesce(case when f.free > 0 then 100 end, %(each)s::int)"]
)
def test_rule_20_a_claim_caps_each_destination(play: Play, instead: str) -> None:
    play(overfull, Query("claim", "coalesce(f.free, %(each)s::int)", instead), reports="one claim took")


def short_claim(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A claim comes back short because all its heads were of one destination; behind them another waits."""
    contact = factories.contact(database, factories.user(database), "http://127.0.0.1:9/alice")
    page = {"incident_id": bare_incident(database), "contact_method_id": contact}
    rows(database, 20, destination="webhook:slow", **page)
    [behind] = rows(database, 1, destination="webhook:up", **page)
    made = engine_with(database)
    session = Session(database.url)
    for _ in range(20):
        if made.tick(session) > 0:
            break
    session.close()
    return ["the engine sleeps while a page could leave"] * (attempt(database, behind)["status"] == "PENDING")


def test_rule_20_the_engine_claims_until_a_claim_returns_nothing(play: Play) -> None:
    wrong = Code(engine.Engine, "tick", "(claimed or due.assumed)", "claimed >= self.senders.count")
    play(short_claim, wrong, reports="sleeps while")


def storm(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """Fifty pages are due for one contact."""
    for _ in range(50):
        rows(database, 1, bundle="method:1", pace_seconds=10, incident_id=bare_incident(database))
    taken = take(database, 16)
    found = f"{len({row.head for row in taken})} messages with {len(taken)} of its pages"
    return [f"one contact got {found}"] * (found != "1 messages with 50 of its pages")


def test_rule_21_all_that_is_due_for_a_contact_is_one_message(play: Play) -> None:
    play(storm, Query("claim", "limit %(more)s", "limit 1"), reports="one contact got")


def one_of_a_bundle(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A message of two incidents fails, of which one has been acknowledged."""
    first = opened(database, people=1)
    other = factories.open_incident(database, first.service_id or 0, key="cpu")
    with database.read() as tx:
        taken = claim(tx)
    with database.begin() as tx:
        incidents.acknowledge(tx, first.id, ALICE)
    with database.read() as tx:
        settle(tx, taken, "RETRY")
    found = [dict(factories.statuses(database, incident.id))["PAGE"] for incident in (first, other)]
    return [f"the members became {found}"] * (found != ["CANCELLED", "PENDING"])


def test_rule_21_one_outcome_is_settled_for_each_row_by_its_own_state(play: Play) -> None:
    wrong = Query("settle", "t.cancel_requested or o.outcome", "o.outcome")
    play(one_of_a_bundle, wrong, reports="the members became")


def grown(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A message is tried again after another incident has joined it."""
    same = delivery.message_key(["a", "b"]) == delivery.message_key(["b", "a"])
    kept = delivery.message_key(["a"]) == delivery.message_key(["a", "b"])
    return ["a receiver would drop the new incident"] * kept + ["the same set has two keys"] * (not same)


@pytest.mark.parametrize(
    "guard, instead, reports",
    [("len(keys) == 1", "True", "drop the new"), ("sorted(keys)", "keys", "two keys")],
    ids=["the first member's key", "in their order"],
)
def test_rule_21_the_key_of_a_message_is_made_of_its_members(play: Play, guard: str, instead: str, reports) -> None:
    play(grown, Code(delivery, "message_key", guard, instead), reports=reports)


def too_close(database: Database, hands: Hands, clock: MovedClock) -> list[str]:
    """A contact with a pace of ten seconds; a page is due for it at every moment, and two processes look in turn."""
    incident_id, messages, taken = bare_incident(database), [], []
    for second in range(12):
        rows(database, 1, bundle="method:1", pace_seconds=10, incident_id=incident_id, step=second)
        with database.read() as tx:
            if second == 2:
                settle(tx, taken, "DELIVERED")
            if claimed := claim(tx, "one" if second % 2 == 0 else "two"):
                messages.append(second)
                taken = claimed
        clock.pass_(seconds=1)
    return [f"messages left in seconds {messages}"] * (messages != [0, 10])


@pytest.mark.parametrize(
    "wrong",
    [
        Query("claim", "in (select bundle from allowed) and until <= %(now)s", "in (select bundle from allowed)"),
        Query("settle", "filter (where next = 'DELIVERED')", "filter (where false)"),
    ],
    ids=["one in flight", "one that was sent"],
)
def test_rule_22_a_contact_waits_for_its_pace(play: Play, wrong: Query) -> None:
    play(too_close, wrong, reports="messages left in seconds")
