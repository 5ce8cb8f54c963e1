"""Verbs stepped by hand: each runs in a thread and a transaction of its own, and stops before a named query."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from escalade import attempts
from escalade.attempts import Claimed, Outcome, Room
from escalade.db import Begin, Database, Tx, connect
from tests.receiver import wait_for

ANYWHERE = Room((), (), {}, 100)
SECONDS = 10.0


class Stepped:
    """A verb under way. `before` names the query it stops at; "commit" is the end of its transaction."""

    def __init__(self, url: str, verb: Callable[[Begin], Any], before: str | None) -> None:
        self.before = before
        self.reached, self.told_to_go = threading.Event(), threading.Event()
        self.conn = connect(url, lock_ms=int(SECONDS * 1000))
        self.pid = self.conn.info.backend_pid
        self.watcher = connect(url)
        self.answer: Any = None
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._run, args=(verb,), daemon=True)
        self.thread.start()

    def _run(self, verb: Callable[[Begin], Any]) -> None:
        try:
            self.answer = verb(self.begin)
        except Exception as error:
            self.error = error

    @contextmanager
    def begin(self) -> Iterator[Tx]:
        """One transaction that stops where this verb is to stop."""
        with self.conn.transaction():
            yield _StoppingTx(self.conn, self)
            self.stop_at("commit")

    def stop_at(self, name: str) -> None:
        """Called before every query: wait here, once, if this is the one."""
        if name == self.before and not self.reached.is_set():
            self.reached.set()
            assert self.told_to_go.wait(SECONDS), f"nobody let the verb go on before {name}"

    def stopped(self) -> "Stepped":
        """Wait until it has come to its query."""
        wait_for(lambda: self.reached.is_set() or self.error, what=f"stop before {self.before}")
        if self.error is not None:
            raise self.error
        return self

    def blocked(self) -> "Stepped":
        """Wait until the server says that it waits for a lock of somebody else."""
        wait_for(lambda: self.waits() or not self.thread.is_alive(), what="wait for a lock")
        assert self.waits(), f"it did not wait for anybody, and answered {self.answer!r} {self.error!r}"
        return self

    def waits(self) -> bool:
        """Whether it waits for a lock at this moment."""
        row = self.watcher.execute("select cardinality(pg_blocking_pids(%s)) > 0", [self.pid]).fetchone()
        return bool(row and row[0])

    def done(self) -> Any:
        """Let it go on, and wait for what it answers. Raises what it raised."""
        self.told_to_go.set()
        self.thread.join(SECONDS)
        assert not self.thread.is_alive(), "the verb did not end"
        if self.error is not None:
            raise self.error
        return self.answer

    def close(self) -> None:
        """End it, whatever has become of the test."""
        self.told_to_go.set()
        self.thread.join(SECONDS)
        self.conn.close()
        self.watcher.close()


class _StoppingTx(Tx):
    def __init__(self, conn: Any, verb: Stepped) -> None:
        super().__init__(conn)
        self.verb = verb

    def many(self, row: Any, name: str, /, **params: Any) -> Any:
        self.verb.stop_at(name)
        return super().many(row, name, **params)

    def value(self, name: str, /, **params: Any) -> Any:
        self.verb.stop_at(name)
        return super().value(name, **params)

    def values(self, name: str, /, **params: Any) -> Any:
        self.verb.stop_at(name)
        return super().values(name, **params)

    def run(self, name: str, /, **params: Any) -> int:
        self.verb.stop_at(name)
        return super().run(name, **params)


class Hands:
    """Starts stepped verbs on one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.verbs: list[Stepped] = []

    def start(self, verb: Callable[[Begin], Any], before: str | None = None) -> Stepped:
        """A verb that begins its own transactions."""
        stepped = Stepped(self.database.url, verb, before)
        self.verbs.append(stepped)
        return stepped

    def call(self, verb: Callable[..., Any], *args: Any, before: str | None = None) -> Stepped:
        """A verb that is given a transaction first."""

        def alone(begin: Begin) -> Any:
            with begin() as tx:
                return verb(tx, *args)

        return self.start(alone, before)

    def close(self) -> None:
        """End them all."""
        for verb in self.verbs:
            verb.close()


def claim(tx: Tx, owner: str = "one", n: int = 100, lease: float = 20.0, room: Room = ANYWHERE) -> list[Claimed]:
    """Claim of the high lane."""
    return sorted(attempts.claim(tx, "high", owner, lease, n, room), key=lambda row: row.id)


def settle(tx: Tx, rows: Sequence[Claimed], outcome: str, owner: str = "one") -> list[attempts.Settled]:
    """Settle claimed rows with one outcome."""
    return attempts.settle(tx, owner, outcomes(rows, outcome))


def outcomes(rows: Sequence[Claimed], outcome: str, delay: float = 0.0) -> list[Outcome]:
    """The same outcome for each row."""
    error = None if outcome in ("DELIVERED", "RELEASE") else "the test says so"
    return [Outcome(row.id, row.claim_seq, outcome, row.claimed_at, row.claimed_at, delay, error) for row in rows]
