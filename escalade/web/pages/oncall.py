"""Who is on call now, and who comes next, for each schedule."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from flask import Blueprint, render_template

from escalade import oncall, schedules, users
from escalade.db import Tx
from escalade.schedules import ScheduleRow
from escalade.web.access import needs
from escalade.web.context import context

pages = Blueprint("oncall_page", __name__)

HORIZON = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Turn:
    """One schedule: who is on call now, and who from `changes_at` on; `fault` says why that cannot be told."""

    schedule: ScheduleRow
    now: list[str] = field(default_factory=list)
    changes_at: datetime | None = None
    next: list[str] = field(default_factory=list)
    fault: str | None = None


@pages.get("/oncall")
@needs("viewer")
def show() -> str:
    """Who is on call now and next."""
    with context().db.read() as tx:
        now = tx.now
        names = {user.id: user.name for user in users.every(tx)}
        turns = [turn(tx, row, names, now) for row in tx.many(ScheduleRow, "all_schedules")]
    return render_template("oncall/show.html", turns=turns, now=now)


def turn(tx: Tx, row: ScheduleRow, names: dict[int, str], now: datetime) -> Turn:
    """One schedule's turn; one that cannot be worked out hides no other."""
    try:
        schedule = schedules.load(tx, [row.id])[row.id]
        current = oncall.who(schedule, now)
        changes_at = oncall.next_change(schedule, now, now + HORIZON)
        after = oncall.who(schedule, changes_at) if changes_at else []
    except (ValueError, KeyError) as error:
        return Turn(row, fault=f"Who is on call cannot be worked out: {error}")
    return Turn(row, [names.get(i, "?") for i in current], changes_at, [names.get(i, "?") for i in after])
