"""How times and results read on a page. Times are shown in the reader's zone, and carry UTC for machines."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from flask import Flask, g

from escalade import timeline
from escalade.incidents import Answer
from escalade.ladder import Target
from escalade.overview import AttemptView

WEB_LINKS = ("http://", "https://")


def install(app: Flask) -> None:
    """The filters that templates use."""
    app.jinja_env.filters.update(
        utc=utc, stamp=stamp, until=until, since=since, day=day, plural=plural, clock=clock, brief=brief, span=span
    )
    app.jinja_env.filters.update(why=why, bars=bars, at_zone=at_zone, calendar=calendar, weekday=weekday)


def zone() -> ZoneInfo:
    """The zone that this page's times are shown in: UTC until the page has said whose it is."""
    found: ZoneInfo = g.get("zone") or ZoneInfo("UTC")
    return found


def use_zone(name: str) -> None:
    """Show the times of this page in a zone; a name this machine does not know means UTC."""
    try:
        g.zone = ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        g.zone = ZoneInfo("UTC")


def utc(at: datetime) -> str:
    """For the datetime attribute."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def utc_exact(at: datetime) -> str:
    """For an address that goes on from exactly this time."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def stamp(at: datetime) -> str:
    """Day, time and zone, as in `30 Nov 20:31:05 CET`."""
    return timeline.stamp(at.astimezone(zone()))


def brief(at: datetime, now: datetime) -> str:
    """Time and zone, and the day where it is not today, as in `20:31:05 CET`."""
    local = at.astimezone(zone())
    return f"{local:%H:%M:%S} {local:%Z}" if local.date() == now.astimezone(zone()).date() else stamp(at)


def clock(at: datetime) -> str:
    """The time of day, as in `20:31:05`."""
    return f"{at.astimezone(zone()):%H:%M:%S}"


def day(at: datetime) -> str:
    """The day a time falls on in the reader's zone, as in `Monday 30 November 2026`."""
    local: date = at.astimezone(zone()).date()
    return f"{local:%A} {local.day} {local:%B %Y}"


def span(seconds: float) -> str:
    """4:32, 2h 05m or 3d 4h; static/app.js counts in the same form."""
    whole = max(0, round(seconds))
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def until(at: datetime, now: datetime) -> str:
    """How long it is to a time: `in 4:32`, or `now`."""
    return f"in {span((at - now).total_seconds())}" if at > now else "now"


def since(at: datetime, now: datetime) -> str:
    """How long ago a time was."""
    return span((now - at).total_seconds())


def at_zone(at: datetime, name: str | None = None) -> str:
    """Weekday, day, time and zone, without seconds, as in `Mon 30 Nov 09:00 CET`; in the zone of the page, or in
    another by its name, which then says the zone alone where it is as short. Empty for a zone that is not known."""
    try:
        local = at.astimezone(ZoneInfo(name) if name else zone())
    except (KeyError, ValueError, OSError):
        return ""
    label = "" if name == f"{local:%Z}" else f" {local:%Z}"
    return f"{local:%a} {local.day} {local:%b %H:%M}{label}"


def calendar(day: date) -> str:
    """A day, as in `30 Nov`."""
    return f"{day.day} {day:%b}"


def weekday(day: date) -> str:
    """The first letters of its name."""
    return f"{day:%a}"


def bars(counts: Sequence[int], height: int = 20) -> str:
    """Counts as the path of a small chart: a bar each, 3 wide, the highest as high as the chart."""
    most = max(counts, default=0)
    return "".join(
        f"M{3 * place + 1} {height}v-{max(1, round(n * height / most))}" for place, n in enumerate(counts) if n
    )


def plural(n: int, one: str, many: str | None = None) -> str:
    """`1 page`, `2 pages`."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def why(view: AttemptView, now: datetime) -> str:
    """Why an attempt waits, or why it never left; empty where its state says it all."""
    if view.status == "CANCELLED":
        return "nobody needed it any more"
    if view.status != "PENDING":
        return ""
    if view.held_reason:
        return view.held_reason
    if view.kind == "STEP":
        return "unless somebody acknowledges first"
    if view.tries:
        return "to be tried again"
    return "as the notification rules say" if view.due_at > now else "for the next free sender"


def stopped(cancelled: int, names: Iterable[str | None]) -> str:
    """What an acknowledgement stopped, and what it could not stop any more; empty for nothing."""
    on_their_way = [name for name in names if name]
    parts = []
    if cancelled:
        parts.append(f"{plural(cancelled, 'pending page or escalation', 'pending pages and escalations')} cancelled")
    if on_their_way:
        verb = "was" if len(on_their_way) == 1 else "were"
        people = ", ".join(dict.fromkeys(on_their_way))
        parts.append(f"{plural(len(on_their_way), 'page')} {verb} already on the way to {people}")
    return ", ".join(parts) + "." if parts else ""


def stopped_by(answers: Iterable[Answer]) -> str:
    """The same for the answers of several acknowledgements."""
    found = list(answers)
    air = [page.user or page.channel for answer in found for page in answer.in_flight]
    return stopped(sum(answer.cancelled for answer in found), air)


def whom(target: Target) -> str:
    """A target as a part of a sentence."""
    return {"user": "", "channel": "#"}.get(target.kind, f"{target.kind} ") + target.name


def web_link(link: str | None) -> str | None:
    """The link, where it is one that a browser may follow."""
    return link if link and link.lower().startswith(WEB_LINKS) else None
