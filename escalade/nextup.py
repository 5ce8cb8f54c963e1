"""Whom a step that is still to come would page, worked out for the time it is due."""

from dataclasses import dataclass, field
from datetime import datetime

from escalade import ladder, oncall, schedules, settings
from escalade.db import Tx
from escalade.incident import Incident
from escalade.ladder import Target

NOBODY = "nobody can be reached"


@dataclass(slots=True)
class Lookup:
    """Looks everything up once for many steps."""

    tx: Tx
    loaded: dict[int, oncall.Schedule[int] | None] = field(default_factory=dict)
    names: dict[int, str | None] = field(default_factory=dict)
    channels: dict[int, bool] = field(default_factory=dict)
    fallback: list[Target] | None = None

    def who(self, incident: Incident, step: int, at: datetime) -> str:
        """Whom the step of this incident would tell at that time, in words."""
        policy = ladder.read(incident.policy)
        if step <= len(policy.steps):
            return self._told(policy.steps[step - 1].targets, at) or NOBODY
        if incident.repeats_left > 0 and policy.steps:
            again = self._told(policy.steps[0].targets, at) or NOBODY
            return f"round {incident.round + 1}: {again}"
        if self.fallback is None:
            self.fallback = settings.fallback(self.tx)
        told = self._told(tuple(self.fallback), at)
        return f"nobody is left; the fallback {told} is told" if told else "nobody is left, and no fallback can be told"

    def _told(self, targets: tuple[Target, ...], at: datetime) -> str:
        names: list[str] = []
        for target in targets:
            names += self._names(target, at)
        return ", ".join(dict.fromkeys(names))

    def _names(self, target: Target, at: datetime) -> list[str]:
        if target.kind == "channel":
            return [f"#{target.name}"] if self._has_channel(target.id) else []
        ids = [target.id] if target.kind == "user" else self._on_call(target.id, at)
        missing = [user_id for user_id in ids if user_id not in self.names]
        if missing:
            found: dict[int, str] = {
                row["id"]: row["name"] for row in self.tx.many(dict, "who_can_be_paged", ids=missing)
            }
            self.names.update({user_id: found.get(user_id) for user_id in missing})
        return [name for user_id in ids if (name := self.names[user_id]) is not None]

    def _has_channel(self, channel_id: int) -> bool:
        if channel_id not in self.channels:
            self.channels[channel_id] = bool(self.tx.values("channels_to_page", ids=[channel_id]))
        return self.channels[channel_id]

    def _on_call(self, schedule_id: int, at: datetime) -> list[int]:
        if schedule_id not in self.loaded:
            try:
                self.loaded[schedule_id] = schedules.load(self.tx, [schedule_id]).get(schedule_id)
            except (ValueError, KeyError, TypeError):
                self.loaded[schedule_id] = None
        schedule = self.loaded[schedule_id]
        try:
            return [] if schedule is None else oncall.who(schedule, at)
        except ValueError:
            return []
