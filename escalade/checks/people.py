"""Whether an alert reaches somebody: people, schedules, policies and services."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from escalade import fanout, ladder, rota
from escalade.checks.finding import Finding, fault, listed, ok, warning
from escalade.config import Config
from escalade.db import Tx

URGENCIES = ("high", "low")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody whom no contact method reaches; `wanted` where a policy or a rotation names them."""

    email: str
    wanted: bool


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy; `used` where a service climbs it. Steps are as an incident keeps them."""

    name: str
    used: bool
    steps: list[dict[str, Any]]


def people(tx: Tx, config: Config) -> Iterator[Finding]:
    """People who cannot be reached."""
    found = tx.many(Person, "doctor_unreachable", now=tx.now)
    if wanted := [person.email for person in found if person.wanted]:
        yield fault(
            "people", f"{listed(wanted)}: to be paged, but without a verified contact method; give each at least one"
        )
    if others := [person.email for person in found if not person.wanted]:
        yield warning("people", f"{listed(others)}: without a verified contact method; give each at least one")
    if not found:
        yield ok("people", "everybody can be reached")


def schedules(tx: Tx, config: Config) -> Iterator[Finding]:
    """Schedules with nobody on call now."""
    found = rota.on_call(tx, tx.now)
    broken = [item for item in found if item.fault is not None]
    empty = [item.schedule.name for item in found if item.fault is None and not item.people]
    for item in broken:
        yield fault("schedules", f"{item.schedule.name} cannot be worked out: {item.fault}; correct it")
    if empty:
        yield warning("schedules", f"{listed(empty)}: nobody is on call now; close the gap, or page somebody else too")
    if not broken and not empty:
        yield ok("schedules", f"{len(found)}, with somebody on call now" if found else "none")


def policies(tx: Tx, config: Config) -> Iterator[Finding]:
    """Policies and steps that would page nobody now."""
    found = tx.many(Policy, "doctor_policies")
    bad = [finding for policy in found for finding in _policy(tx, policy)]
    yield from bad
    if not bad:
        yield ok("policies", f"{len(found)}, each step with somebody to page" if found else "none")


def _policy(tx: Tx, policy: Policy) -> Iterator[Finding]:
    reached = [_reached(tx, step) for step in policy.steps]
    if not any(pages for pages, _ in reached):
        text = f"{policy.name} pages nobody now{_because([why for _, why in reached])}; give it a step that does"
        yield fault("policies", text) if policy.used else warning("policies", f"{text} (no service uses it)")
        return
    for number, (pages, why) in enumerate(reached, 1):
        if not pages:
            yield warning("policies", f"{policy.name}, step {number} pages nobody now and is skipped{_because([why])}")


def _reached(tx: Tx, step: dict[str, Any]) -> tuple[bool, str]:
    """Whether a step pages anybody, of whatever urgency the incident is; and the reasons why not."""
    targets = [ladder.target(item) for item in step["targets"]]
    found = [fanout.reach(tx, targets, urgency) for urgency in URGENCIES]
    reasons = dict.fromkeys(f"{target}: {why}" for item in found for target, why in item.skipped)
    return all(item.pages for item in found), ", ".join(reasons)


def _because(reasons: list[str]) -> str:
    known = "; ".join(dict.fromkeys(why for why in reasons if why))
    return f" ({known})" if known else ""


def services(tx: Tx, config: Config) -> Iterator[Finding]:
    """Services that no alert can reach."""
    rows = tx.many(dict, "doctor_services")
    deaf = [row["name"] for row in rows if not row["heard"]]
    if not rows:
        yield warning("services", "none, so no alert can come in; set one up with: python app.py apply")
    elif deaf:
        yield warning("services", f"{listed(deaf)}: without integration or heartbeat, so no alert comes in; add one")
    else:
        yield ok("services", f"{len(rows)}, each with a way in")
