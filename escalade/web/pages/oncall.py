"""Who is on call: now, next and through a week, overrides, and who would be paged if a service fired now."""

import re
from datetime import date, datetime, timedelta
from typing import Any

from flask import Blueprint, Response, render_template, request, url_for

from escalade import clean, overrides, rehearsal, rota, schedules, users
from escalade.db import Tx
from escalade.errors import Invalid, NotFound
from escalade.inbound.generic import SEVERITIES
from escalade.ladder import Target
from escalade.overrides import Listed, Wanted
from escalade.schedules import ScheduleRow
from escalade.timeline import Piece
from escalade.web.access import caller, needs
from escalade.web.context import context
from escalade.web.pages import filters, regions, week, words
from escalade.web.pages.telling import Said

pages = Blueprint("oncall_page", __name__)

HORIZON = timedelta(days=90)
HOURS = (1, 4, 8, 12)
# A take that lasts longer than this is no shift but a mistake, or a change of the rotation.
LONGEST = timedelta(days=90)
FIELDS = ("kind", "user", "replaces", "start", "end")


@pages.get("/oncall")
@needs("viewer")
def show() -> str:
    """The week that the address names, or this one; and where it names a service, a rehearsal of its ladder."""
    with context().db.read() as tx:
        seen = regions.frame(tx)
        seen |= _week(tx) | _rehearsal(tx) | {"said": _said(tx, request.args.get("said", ""))}
    return render_template("oncall/show.html", **seen)


def _week(tx: Tx) -> dict[str, Any]:
    shown = week.of(_day(tx), words.zone())
    spans = rota.spans(tx, shown.start, shown.end)
    kept: dict[int, list[Listed]] = {}
    for one in overrides.since(tx, min(tx.now, shown.start)):
        if one.start_at < shown.end or one.end_at > tx.now:
            kept.setdefault(one.schedule_id, []).append(one)
    return {
        "week": shown,
        "this_week": shown.start <= tx.now < shown.end,
        "watches": rota.watches(tx, tx.now, HORIZON),
        "bars": {number: week.bars(shown, span.turns) for number, span in spans.items()},
        "overrides": kept,
        "newest": overrides.newest(tx),
        "hours": [tx.now + timedelta(hours=n) for n in HOURS],
        "days": [shown.monday + timedelta(days=n) for n in range(week.DAYS)],
        "earlier": shown.monday - timedelta(days=7),
        "later": shown.monday + timedelta(days=7),
    }


def _day(tx: Tx) -> date:
    try:
        day = date.fromisoformat(request.args.get("week", ""))
    except ValueError:
        day = tx.now.astimezone(words.zone()).date()
    # Room at each end for a week and its neighbours.
    return min(max(day, date(1971, 1, 1)), date(8000, 1, 1))


def _rehearsal(tx: Tx) -> dict[str, Any]:
    service = clean.text(request.args.get("service", ""), 1_000)[0]
    severity = request.args.get("severity", "critical")
    severity = severity if severity in SEVERITIES else "critical"
    seen = {"services": tx.values("service_names"), "severities": SEVERITIES, "service": service, "severity": severity}
    try:
        return seen | {"rehearsal": rehearsal.rehearse(tx, service, severity) if service else None}
    except NotFound as refusal:
        return seen | {"rehearsal": None, "unknown": refusal.message}


@pages.post("/oncall/<int:schedule_id>/take")
@needs("responder")
def take(schedule_id: int) -> Response:
    """The person who presses is on call from now until the time on the button. Raises NotFound or Invalid."""
    who = caller()
    if who.user_id is None:
        raise Invalid("A token is nobody who can be on call: name a person.", "user")
    until = _instant(request.form.get("until", ""))
    with context().db.begin() as tx:
        row = _schedule(tx, schedule_id)
        if until > tx.now + LONGEST:
            raise Invalid("An override by one tap lasts at most 90 days.", "until")
        if until <= tx.now:
            raise Invalid("That time has passed meanwhile: choose again.", "until")
        email = users.find(tx, who.user_id).email
        return _made(tx, row, Wanted("take", email, None, tx.now, until), who.actor)


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None or not 1971 <= at.year <= 8000:
            raise ValueError(text)
        return at
    except ValueError:
        raise Invalid("Choose until when from the buttons.", "until") from None


def _made(tx: Tx, row: ScheduleRow, wanted: Wanted, actor: str) -> Response:
    newest, seen = overrides.newest(tx)[row.id], request.form.get("seen", type=int)
    number = overrides.create(tx, row.name, wanted, actor)
    late = seen is not None and newest > seen
    return _back(f"override-{number}{'-late' if late else ''}")


def _back(word: str) -> Response:
    # An empty week is left out of the address.
    to = url_for("oncall_page.show", said=word, week=request.form.get("week") or None)
    return Response(status=303, headers={"Location": to})


@pages.get("/oncall/<int:schedule_id>/override")
@needs("responder")
def form(schedule_id: int) -> str:
    """The form for any override. Raises NotFound."""
    with context().db.read() as tx:
        seen = regions.frame(tx)
        row = _schedule(tx, schedule_id)
        start = tx.now.astimezone(words.zone()).replace(second=0, microsecond=0)
        typed = {
            "kind": "take",
            "user": caller().actor,
            "start": f"{start:%Y-%m-%dT%H:%M}",
            "end": f"{start + timedelta(hours=8):%Y-%m-%dT%H:%M}",
            "seen": str(overrides.newest(tx)[row.id]),
            "week": request.args.get("week", ""),
        }
        return _form(tx, row, typed, {}, seen)


@pages.post("/oncall/<int:schedule_id>/override")
@needs("responder")
def create(schedule_id: int) -> Response:
    """Somebody takes a time, stands in for somebody, or is taken out. 422 with the form as typed where it cannot be."""
    with context().db.begin() as tx:
        seen = regions.frame(tx)
        row = _schedule(tx, schedule_id)
        typed = {name: clean.text(request.form.get(name, ""), 400)[0] for name in (*FIELDS, "seen", "week")}
        try:
            with tx.part():
                return _made(tx, row, _wanted(typed), caller().actor)
        except Invalid as refusal:
            return Response(_form(tx, row, typed, {refusal.field or "kind": refusal.message}, seen), 422)


def _wanted(typed: dict[str, str]) -> Wanted:
    replaces = typed["replaces"] if typed["kind"] == "replace" else ""
    if typed["kind"] == "replace" and not replaces:
        raise Invalid("Choose who is replaced.", "replaces")
    if not typed["user"]:
        raise Invalid("Choose a person.", "user")
    times = {}
    for name in ("start", "end"):
        try:
            times[name] = filters.local_time(typed[name])
        except Invalid as refusal:
            raise Invalid(refusal.message, name) from None
    return Wanted(typed["kind"], typed["user"], replaces or None, times["start"], times["end"])


def _form(tx: Tx, row: ScheduleRow, typed: dict[str, str], faults: dict[str, str], seen: dict[str, Any]) -> str:
    people = [one.name for one in tx.many(Target, "pageable_targets") if one.kind == "user"]
    return render_template("oncall/override.html", schedule=row, typed=typed, faults=faults, people=people, **seen)


@pages.post("/oncall/<int:schedule_id>/overrides/<int:override_id>/remove")
@needs("responder")
def remove(schedule_id: int, override_id: int) -> Response:
    """End an override, wherever it came from; one that somebody else has removed stays removed, and that is said."""
    with context().db.begin() as tx:
        row = _schedule(tx, schedule_id)
        try:
            overrides.delete(tx, row.name, override_id)
        except NotFound:
            return _back("override-gone")
    return _back("override-removed")


def _schedule(tx: Tx, schedule_id: int) -> ScheduleRow:
    return schedules.by_id(tx, schedule_id)


def _said(tx: Tx, word: str) -> Said | None:
    """What the address says has just been done, as far as the database bears it out."""
    plain = {"override-removed": "Override removed.", "override-gone": "That override had been removed already."}
    if word in plain:
        return Said([plain[word]])
    found = re.fullmatch(r"override-(\d{1,18})(-late)?", word)
    one = overrides.find(tx, int(found[1])) if found else None
    if found is None or one is None:
        return None
    doing = {
        "take": "takes",
        "replace": f"stands in for {one.replaces or 'somebody who is gone'} on",
        "remove": "is taken off",
    }
    pieces: list[Piece] = [
        f"{one.user or 'Somebody who is gone'} {doing[one.kind]} {one.schedule} from ",
        one.start_at,
        " until ",
        one.end_at,
        ".",
    ]
    if found[2]:
        pieces.append(" Somebody else had changed this schedule meanwhile: look below whether both are meant.")
    return Said(pieces, warning=bool(found[2]))
