"""Schedules as they stand in the database, as a file can say them: people by e-mail, and nobody who is gone."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from escalade import oncall, schedules
from escalade.db import Tx
from escalade.transfer import gone, model

Emails = dict[int, str]


def load(tx: Tx, emails: Emails) -> tuple[model.Schedule, ...]:
    """Every schedule; `emails` has everybody who is there."""
    rows = tx.many(schedules.ScheduleRow, "transfer_schedules")
    ids = [row.id for row in rows]
    loaded = schedules.load(tx, ids)
    rotation_ids: dict[int, list[int]] = defaultdict(list)
    for rotation in tx.many(schedules.RotationRow, "rotations_of", ids=ids):
        rotation_ids[rotation.schedule_id].append(rotation.id)
    overrides: dict[int, list[schedules.OverrideRow]] = defaultdict(list)
    for override in tx.many(schedules.OverrideRow, "overrides_of", ids=ids):
        overrides[override.schedule_id].append(override)
    return tuple(
        model.Schedule(
            row.name,
            row.timezone,
            tuple(_rotations(loaded[row.id], rotation_ids[row.id], emails, tx.now)),
            tuple(_overrides(overrides[row.id], emails, "yaml")),
            tuple(one for one in _overrides(overrides[row.id], emails, "person") if one.end > tx.now),
            row.id,
        )
        for row in rows
    )


def _rotations(
    schedule: oncall.Schedule[int], ids: Iterable[int], emails: Emails, now: datetime
) -> Iterator[model.Rotation]:
    for rotation, rotation_id in zip(schedule.rotations, ids, strict=True):
        named = {*rotation.participants, *(user for one in rotation.roster_changes for user in one.participants)}
        missing = named - emails.keys()
        left = gone.without(rotation, schedule.timezone, missing, now) if missing else rotation
        yield model.Rotation(
            left.name,
            tuple(emails[user] for user in left.participants),
            left.unit,
            left.length,
            left.start_date,
            left.handoff_time,
            tuple(model.Window(window.days, window.start, window.end) for window in left.restrictions),
            tuple(
                model.RosterChange(change.at, tuple(emails[user] for user in change.participants))
                for change in left.roster_changes
            ),
            rotation_id,
        )


def _overrides(rows: Iterable[schedules.OverrideRow], emails: Emails, source: str) -> Iterator[model.Override]:
    for row in rows:
        user, replaces = emails.get(row.user_id or 0), emails.get(row.replaces_id or 0)
        if row.source == source and user is not None and (replaces is not None or row.kind != "replace"):
            yield model.Override(row.kind, user, row.start_at, row.end_at, replaces, row.id)
