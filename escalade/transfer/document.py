"""A configuration file, read: what it says, what is wrong with it, and what it refers to."""

from dataclasses import dataclass, field

from escalade.transfer import model, shape, source
from escalade.transfer.faults import Faults, Place


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says. `root` holds the faults found so far and the names to be looked up.

    `configuration` may be used only while there are no faults: what was wrong has no value in it.
    """

    configuration: model.Configuration
    root: Place = field(repr=False)

    @property
    def faults(self) -> list[str]:
        """What is wrong with the file as far as it shows without the database."""
        return list(self.root.faults)


def read(text: str) -> Document:
    """The file's text, taken apart. Raises Faults where it is no YAML mapping; other faults are in the answer."""
    root = Place()
    value = source.load(text, root)
    if not isinstance(value, dict):
        raise Faults(["the file is empty" if value is None else "the file must be a mapping: users, channels, ..."])
    return Document(shape.FILE.read(value, root), root)
