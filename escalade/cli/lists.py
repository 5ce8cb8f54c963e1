"""Lists as people read them in a terminal."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from escalade import logs
from escalade.api_tokens import ApiToken
from escalade.incident import Incident
from escalade.overview import AttemptView
from escalade.shown import Shown, when

WIDEST = 60

Row = TypeVar("Row", Incident, AttemptView)


def cut(rows: Sequence[Row], limit: int) -> tuple[list[Row], str | None]:
    """The first rows, and how to ask for those after them: None where there are none."""
    shown = list(rows[:limit])
    return shown, str(shown[-1].id) if len(rows) > limit else None


def incident_lines(rows: Sequence[Shown]) -> list[list[str]]:
    """A table of incidents, headings first; none where there are none."""
    head = ["ID", "STATUS", "SEVERITY", "SERVICE", "STEP", "NEXT STEP", "OPENED", "TITLE"]
    return [head, *(_incident_line(row) for row in rows)] if rows else []


def _incident_line(row: Shown) -> list[str]:
    status = row["status"] + (" (exhausted)" if row["exhausted_at"] else " (snoozed)" if row["snoozed_until"] else "")
    step = f"{row['round']}.{row['step']}"
    times = [_short(row["escalates_at"]), _short(row["opened_at"])]
    return [str(row["id"]), status, row["severity"], row["service"] or "-", step, *times, row["title"]]


def attempt_lines(views: Sequence[AttemptView]) -> list[list[str]]:
    """A table of attempts, headings first; none where there are none."""
    head = ["ID", "INCIDENT", "STATUS", "KIND", "DUE", "TRIES", "WHO", "BY", "REMARK"]
    return [head, *(_attempt_line(view) for view in views)] if views else []


def _attempt_line(view: AttemptView) -> list[str]:
    by = f"{view.transport} {view.address or ''}" if view.transport else "-"
    remark = view.last_error or view.held_reason or ""
    tries = f"{view.tries}/{view.max_tries}" if view.kind != "STEP" else "-"
    incident, due = str(view.incident_id or "-"), _short(when(view.due_at))
    return [str(view.id), incident, view.status, view.kind, due, tries, view.who or "-", by.strip(), remark]


def token_lines(tokens: Sequence[ApiToken]) -> list[list[str]]:
    """A table of tokens, headings first; none where there are none."""
    rows = [
        [one.name, one.role, *(_short(when(at)) for at in (one.created_at, one.last_used_at, one.expires_at))]
        for one in tokens
    ]
    return [["NAME", "ROLE", "CREATED", "LAST USED", "ENDS"], *rows] if rows else []


def _short(time: str | None) -> str:
    """A time as the API writes it, without parts of a second."""
    return f"{time[:19]}Z".replace("T", " ") if time else "-"


def show(table: Sequence[Sequence[str]], following: str | None, nothing: str) -> None:
    """Print a table in columns; below it, how to go on."""
    cells = [[_cell(text) for text in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    if not cells:
        print(nothing)
    if following is not None:
        print(f"more: --before {following}")


def _cell(text: str) -> str:
    text = logs.escape(text)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def show_json(value: Any) -> None:
    """Print JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
