"""What uses a thing, so that it cannot be deleted under those who count on it."""

from collections.abc import Iterator
from dataclasses import dataclass

from escalade.transfer import model
from escalade.transfer.model import Configuration, Schedule, Thing


@dataclass(frozen=True, slots=True)
class Use:
    """A place where something is used: `section` and `id` say of what, `where` what for."""

    section: str
    id: int
    name: str
    where: str


def uses(stored: Configuration, section: str, thing: Thing) -> list[Use]:
    """Everything that would break, in the order of the file."""
    if section == "policies":
        return [
            Use("services", one.id, one.name, "its policy")
            for one in stored.services
            if one.policy == thing_name(thing)
        ]
    target = f"{section.removesuffix('s')}:{thing_name(thing)}"
    found = list(_targets(stored, target))
    if section == "users":
        found += [use for schedule in stored.schedules for use in _shifts(schedule, thing_name(thing))]
    return found


def thing_name(thing: Thing) -> str:
    """What others call it by."""
    return model.identity(thing)


def _targets(stored: Configuration, target: str) -> Iterator[Use]:
    if stored.settings is not None and target in stored.settings.fallback:
        yield Use("settings", 0, "", "told when a policy is exhausted")
    for policy in stored.policies:
        steps = [str(number) for number, step in enumerate(policy.steps, 1) if target in step.targets]
        if steps:
            yield Use("policies", policy.id, policy.name, f"step {', '.join(steps)}")


def _shifts(schedule: Schedule, email: str) -> Iterator[Use]:
    for rotation in schedule.rotations:
        if email in rotation.participants:
            yield Use("schedules", schedule.id, schedule.name, f"rotation {rotation.name}")
        if any(email in change.participants for change in rotation.roster_changes):
            yield Use("schedules", schedule.id, schedule.name, f"a roster change of rotation {rotation.name}")
    for override in (*(schedule.overrides or ()), *schedule.stand_ins):
        if email in (override.user, override.replaces):
            yield Use("schedules", schedule.id, schedule.name, f"an override until {override.end:%Y-%m-%d %H:%M} UTC")
