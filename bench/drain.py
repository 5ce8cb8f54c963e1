"""Claim-and-settle throughput: the engine as it is, with a transport that does nothing."""

import time
from dataclasses import dataclass

import psycopg

from escalade.delivery import Links
from escalade.dispatch import Settings
from escalade.doorbell import Doorbell
from escalade.engine import Engine
from escalade.health import Health
from escalade.senders import Senders
from escalade.tokens import Signer
from escalade.transports import Network, Receipt, Transport

CHANNEL = """
insert into channel (name, kind, address, updates, pace_seconds, destination)
values ('bench', 'nothing', 'nowhere', false, 0, 'nothing')
on conflict (name) do update set name = excluded.name
returning id
"""
# Both by the small partial indexes: the question must not weigh on what it measures.
LEFT = """
select (exists (select from notification_attempt where status = 'PENDING' and kind <> 'STEP' and lane = 'high')
    or exists (select from notification_attempt where status = 'IN_FLIGHT' and lease_until > '-infinity'))::int
"""
ROWS = """
insert into notification_attempt (incident_id, kind, event, status, lane, round, step, recipient, target, transport,
    destination, pace_seconds, due_at, first_due_at, tries, max_tries, replays, claim_seq, cancel_requested, recheck,
    idempotency_key, summary, channel_id)
select %(incident)s, 'PAGE', 'triggered', 'PENDING', 'high', 1, 1, 'bench:' || n, 'bench', 'nothing',
    'nothing:' || n %% 100, 0, clock_timestamp(), clock_timestamp(), 0, 8, 0, 0, false, false,
    gen_random_uuid()::text, '', %(channel)s
from generate_series(1, %(rows)s) n
"""


@dataclass(frozen=True)
class Drained:
    """How many attempts a second left the queue."""

    senders: int
    rows: int
    seconds: float

    @property
    def rate(self) -> float:
        """Attempts a second."""
        return self.rows / self.seconds


def drain(url: str, senders: int, rows: int = 20_000) -> Drained:
    """Fill the queue with due attempts and let one engine drain it."""
    nothing = Transport("nothing", "Nothing", lambda message, network: Receipt(), lambda a: None, str, 0, False, False)
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("delete from notification_attempt")
        conn.execute("delete from attempt_try")
        channel = _row(conn, CHANNEL)
        incident = _row(conn, "select max(id) from incident")
        conn.execute(ROWS, {"rows": rows, "incident": incident, "channel": channel})
        conn.execute("analyze notification_attempt")
        bell = Doorbell()
        hands = Senders(senders, Network(), {"nothing": nothing}, bell.nudge)
        engine = Engine(url, Settings(), hands, Links("http://127.0.0.1", Signer(["bench"])), bell, Health())
        started = time.perf_counter()
        engine.start()
        while _row(conn, LEFT):
            time.sleep(0.02)
        seconds = time.perf_counter() - started
        engine.stop()
        assert _row(conn, "select count(*) from notification_attempt where status = 'DELIVERED'") == rows
    return Drained(senders, rows, seconds)


def _row(conn: "psycopg.Connection[tuple[int]]", statement: str) -> int:
    row = conn.execute(statement).fetchone()  # type: ignore[call-overload]
    return int(row[0]) if row else 0
