"""The configuration as YAML: `apply` makes it what a file says, `export` writes it as that file."""

from escalade.transfer.applying import apply
from escalade.transfer.document import Document, read
from escalade.transfer.exporting import export
from escalade.transfer.faults import Faults, NotYaml
from escalade.transfer.writer import Change

__all__ = ["Change", "Document", "Faults", "NotYaml", "apply", "export", "read"]
