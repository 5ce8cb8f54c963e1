"""Overrides: somebody takes a shift, stands in for somebody, or is taken out, between two instants."""

from dataclasses import dataclass
from datetime import datetime

from escalade import audit, oncall, schedules, targets
from escalade.db import Tx
from escalade.errors import Invalid, NotFound


@dataclass(frozen=True, slots=True)
class Wanted:
    """An override as somebody asks for it: people by e-mail, times aware; `replaces` goes with kind replace only."""

    kind: str
    user: str
    replaces: str | None
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Listed:
    """An override with the names of its people; `user` is None once that person is gone, and it then does nothing."""

    id: int
    schedule_id: int
    schedule: str
    kind: str
    user: str | None
    replaces: str | None
    start_at: datetime
    end_at: datetime
    source: str
    created_by: str


def since(tx: Tx, after: datetime) -> list[Listed]:
    """Those that have not ended by then, in the order they apply."""
    return tx.many(Listed, "overrides_since", after=after)


def find(tx: Tx, override_id: int) -> Listed | None:
    """One override, or None where it is gone."""
    return tx.maybe(Listed, "override_by_id", id=override_id)


def newest(tx: Tx) -> dict[int, int]:
    """The id of the latest override of each schedule: what somebody else has added since is above it."""
    return {row["schedule_id"]: row["id"] for row in tx.many(dict, "newest_overrides")}


def create(tx: Tx, schedule: str, wanted: Wanted, actor: str) -> int:
    """Add an override to a schedule; its id. Later ones see the result of earlier ones. Raises NotFound for the
    schedule, Invalid for the rest."""
    row = schedules.find(tx, schedule)
    if wanted.kind not in oncall.KINDS:
        raise Invalid(f"kind must be {', '.join(oncall.KINDS[:-1])} or {oncall.KINDS[-1]}.", "kind")
    if (wanted.kind == "replace") != (wanted.replaces is not None):
        raise Invalid("replaces says whom an override of kind replace stands in for, and no other has it.", "replaces")
    if wanted.end <= wanted.start:
        raise Invalid("end must come after start.", "end")
    user = targets.pageable(tx, wanted.user, "user")
    replaces = None if wanted.replaces is None else targets.pageable(tx, wanted.replaces, "replaces")
    if replaces == user:
        raise Invalid("Nobody stands in for themselves.", "replaces")
    override_id: int = tx.value(
        "insert_override",
        schedule_id=row.id,
        kind=wanted.kind,
        user_id=user.id,
        replaces_id=None if replaces is None else replaces.id,
        start_at=wanted.start,
        end_at=wanted.end,
        source="person",
        created_by=actor,
    )
    said = {"kind": wanted.kind, "user": user.email, "replaces": None if replaces is None else replaces.email}
    audit.record(
        tx, "override created", f"{row.name}/{override_id}", None, {**said, "start": wanted.start, "end": wanted.end}
    )
    return override_id


def delete(tx: Tx, schedule: str, override_id: int) -> None:
    """End an override, wherever it came from. Raises NotFound."""
    row = schedules.find(tx, schedule)
    if tx.run("delete_override", id=override_id, schedule_id=row.id) == 0:
        raise NotFound(f"Schedule {row.name} has no override {override_id}.")
    audit.record(tx, "override removed", f"{row.name}/{override_id}")
