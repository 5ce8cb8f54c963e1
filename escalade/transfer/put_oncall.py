"""Writes schedules with their rotations and overrides, and policies with their steps."""

from collections.abc import Iterator
from typing import Any

from escalade.db import as_json
from escalade.transfer import shape
from escalade.transfer.model import Override, Policy, Rotation, Schedule, Step, by_identity
from escalade.transfer.records import show
from escalade.transfer.writer import POLICY, ROTATION, SCHEDULE, Writer, moved, reordered


def put_schedules(writer: Writer, stored: tuple[Schedule, ...], wanted: tuple[Schedule, ...]) -> None:
    """Make these schedules what the file says; others stay."""
    old = by_identity(stored)
    for schedule in wanted:
        before = old.get(schedule.name)
        columns = {"name": schedule.name, "timezone": schedule.timezone}
        schedule_id, _ = writer.put(SCHEDULE, schedule.name, before, schedule, columns)
        writer.ids["schedule", schedule.name] = schedule_id
        _put_rotations(writer, schedule_id, before, schedule)
        _put_overrides(writer, schedule_id, before, schedule)


def put_policies(writer: Writer, stored: tuple[Policy, ...], wanted: tuple[Policy, ...]) -> None:
    """Make these policies what the file says; others stay, and so do incidents under way."""
    old = by_identity(stored)
    for policy in wanted:
        before = old.get(policy.name)
        policy_id, _ = writer.put(POLICY, policy.name, before, policy, {"name": policy.name, "repeat": policy.repeat})
        writer.ids["policy", policy.name] = policy_id
        if policy.steps != (before.steps if before else ()):
            writer.run("transfer_delete_steps", policy_id=policy_id)
            for position, step in enumerate(policy.steps):
                _put_step(writer, policy_id, position, step)


def _put_step(writer: Writer, policy_id: int, position: int, step: Step) -> None:
    step_id = writer.insert("transfer_insert_step", policy_id=policy_id, position=position, wait=step.wait)
    targets = [tuple(target.split(":", 1)) for target in step.targets]
    columns = {
        f"{noun}s": [writer.ids.get((noun, name), 0) if kind == noun else None for kind, name in targets]
        for noun in ("user", "schedule", "channel")
    }
    writer.run("transfer_insert_targets", step_id=step_id, **columns)


def _put_rotations(writer: Writer, schedule_id: int, old: Schedule | None, schedule: Schedule) -> None:
    stored = old.rotations if old else ()
    writer.remove_others(ROTATION, schedule.name, stored, schedule.rotations)
    if reordered(stored, schedule.rotations):
        writer.tell(SCHEDULE, schedule.name, "rotations reordered")
    others, shifted = by_identity(stored), moved(stored, schedule.rotations)
    # What was read of a rotation may depend on the zone (see gone.py), so another zone writes it anew.
    shifted = shifted or (old is not None and old.timezone != schedule.timezone)
    for position, rotation in enumerate(schedule.rotations):
        columns = {**_rotation_columns(writer, rotation), "schedule_id": schedule_id, "position": position}
        name, before = f"{schedule.name}/{rotation.name}", others.get(rotation.name)
        rotation_id, written = writer.put(
            ROTATION, name, before, rotation, columns, part_of_new=old is None, moved=shifted
        )
        if written:
            _put_roster_changes(writer, rotation_id, rotation)


def _rotation_columns(writer: Writer, rotation: Rotation) -> dict[str, Any]:
    return {
        "name": rotation.name,
        "participants": _user_ids(writer, rotation.participants),
        "unit": rotation.unit,
        "length": rotation.length,
        "start_date": rotation.start_date,
        "handoff_time": rotation.handoff_time,
        "restrictions": as_json([show(shape.WINDOW, window) for window in rotation.restrictions]),
    }


def _put_roster_changes(writer: Writer, rotation_id: int, rotation: Rotation) -> None:
    writer.run("transfer_delete_roster_changes", rotation_id=rotation_id)
    for change in rotation.roster_changes:
        participants = _user_ids(writer, change.participants)
        writer.run("append_roster_change", rotation_id=rotation_id, at=change.at, participants=participants)


def _put_overrides(writer: Writer, schedule_id: int, old: Schedule | None, schedule: Schedule) -> None:
    stored, wanted = (old.overrides if old else None) or (), schedule.overrides or ()
    if stored == wanted:
        return
    kept = list(_kept(stored, wanted))
    writer.run("transfer_delete_overrides", schedule_id=schedule_id, kept=kept)
    for override in wanted[len(kept) :]:
        writer.insert(
            "insert_override",
            schedule_id=schedule_id,
            kind=override.kind,
            user_id=_user_ids(writer, (override.user,))[0],
            replaces_id=_user_ids(writer, (override.replaces,))[0] if override.replaces else None,
            start_at=override.start,
            end_at=override.end,
            source="yaml",
            created_by="yaml",
        )


def _kept(stored: tuple[Override, ...], wanted: tuple[Override, ...]) -> Iterator[int]:
    """Ids of the stored overrides that the wanted list begins with. A new one comes after all others, also after
    those of people, so no more than necessary are written anew."""
    left = iter(stored)
    for override in wanted:
        same = next((one for one in left if one == override), None)
        if same is None:
            return
        yield same.id


def _user_ids(writer: Writer, emails: tuple[str, ...]) -> list[int]:
    # In a dry run somebody new has no id.
    return [writer.ids.get(("user", email), 0) for email in emails]
