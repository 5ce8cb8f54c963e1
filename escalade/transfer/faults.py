"""What is wrong with a configuration, each fault with the path of the place where it stands."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

from escalade.errors import Invalid


class Faults(Invalid):
    """The configuration cannot be applied, and nothing was changed; `faults` has one line for each reason."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class NotYaml(Faults):
    """The text breaks the rules of YAML; `reason` says where and how, in words that follow the file's name."""

    def __init__(self, reason: str) -> None:
        super().__init__([f"the file {reason}"])
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that the file uses for something else: `noun` is user, policy, schedule or channel.

    `use` says what a user is wanted for, where a viewer cannot be that.
    """

    place: "Place"
    noun: str
    name: str
    use: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A path in the file, such as `policies[0].steps[1]`, and what has been found in the file so far."""

    path: str = ""
    faults: list[str] = field(default_factory=list, repr=False)
    references: list[Reference] = field(default_factory=list, repr=False)

    def at(self, name: str) -> "Place":
        """The place of a field in the mapping that stands here."""
        step = name if name.isprintable() and len(name) <= 80 else quoted(name)
        return Place(f"{self.path}.{step}" if self.path else step, self.faults, self.references)

    def item(self, index: int) -> "Place":
        """The place of an item in the list that stands here."""
        return Place(f"{self.path}[{index}]", self.faults, self.references)

    def fault(self, message: str) -> None:
        """Note a fault of this place. Sentences of other modules lose their full stop."""
        sentence = message.rstrip(".")
        self.faults.append(f"{self.path}: {sentence}" if self.path else sentence)

    def refer(self, noun: str, name: str, use: str = "") -> None:
        """Note that this place names something, to be looked up when the whole file has been read."""
        self.references.append(Reference(self, noun, name, use))


def quoted(text: str) -> str:
    """The text in double quotes, on one line, cut where it is long."""
    shown = text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
    return f'"{shown[:80]}…"' if len(shown) > 80 else f'"{shown}"'


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "..."?` where a known name is close to this one, else nothing."""
    names = {known_name.lower(): known_name for known_name in known if known_name != name}
    # Two addresses at one domain have most of their letters in common.
    close = difflib.get_close_matches(name.lower()[:200], names, n=1, cutoff=0.85 if "@" in name else 0.6)
    return f"; did you mean {quoted(names[close[0]])}?" if close else ""
