"""Pure rules of the ladder: what a policy says of a step, and how a person wants to be reached."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a step tells: kind is user, schedule or channel; name is an e-mail or a name."""

    kind: str
    id: int
    name: str

    @property
    def label(self) -> str:
        """As the configuration writes it."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Step:
    """One rung; `wait` is in seconds and runs from this step to the next."""

    wait: int
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as an incident keeps it; `repeat` is the number of rounds after the first."""

    name: str | None
    repeat: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Contact:
    """A contact method of a person, once per rule that uses it; `after_seconds` and `urgency` are the rule's."""

    user_id: int
    email: str
    role: str
    method_id: int | None
    kind: str | None
    verified: bool | None
    rule_id: int | None
    after_seconds: int | None
    urgency: str | None


@dataclass(frozen=True, slots=True)
class Reach:
    """One page to be sent: to a contact method or a channel, `after` seconds from now, because of `target`."""

    recipient: str
    target: str
    after: float
    method_id: int | None = None
    channel_id: int | None = None


def read(policy: dict[str, Any]) -> Policy:
    """The policy from the snapshot that an incident carries."""
    return Policy(policy["name"], policy["repeat"], tuple(_step(step) for step in policy["steps"]))


def _step(step: dict[str, Any]) -> Step:
    return Step(step["wait"], tuple(target(item) for item in step["targets"]))


def target(item: dict[str, Any]) -> Target:
    """A target from its stored form."""
    return Target(item["kind"], item["id"], item["name"])


def single(target: Target, wait: int) -> dict[str, Any]:
    """The stored form of a ladder with one step that tells one target."""
    one = {"kind": target.kind, "id": target.id, "name": target.name}
    return {"name": None, "repeat": 0, "steps": [{"wait": wait, "targets": [one]}]}


def wait_after(policy: Policy, step: int, repeats_left: int, reached: bool) -> int:
    """Seconds from this step to the next. A step that reaches nobody is not waited out, except at the end of a
    round that will be repeated: all rounds would pass in an instant."""
    last = step == len(policy.steps)
    return policy.steps[step - 1].wait if reached or (last and repeats_left > 0) else 0


def pages_for(contacts: Iterable[Contact], urgency: str, target: str) -> list[Reach]:
    """How one person is told of an incident of this urgency. Rules that fit it; where none does, every contact
    method at once. Contact methods that are not verified are left out."""
    usable = [contact for contact in contacts if contact.method_id is not None and contact.verified]
    fitting = [contact for contact in usable if contact.rule_id and contact.urgency in (None, urgency)]
    if fitting:
        return [
            Reach(f"rule:{contact.rule_id}", target, float(contact.after_seconds or 0), method_id=contact.method_id)
            for contact in fitting
        ]
    methods = dict.fromkeys(contact.method_id for contact in usable)
    return [Reach(f"method:{method}", target, 0.0, method_id=method) for method in methods]


def once_each(pages: Iterable[Reach]) -> list[Reach]:
    """Two targets may lead to one contact: it is told once, at the earlier time, because of the first target."""
    earliest: dict[str, Reach] = {}
    for page in pages:
        known = earliest.get(page.recipient)
        if known is None or page.after < known.after:
            earliest[page.recipient] = page
    return list(earliest.values())
