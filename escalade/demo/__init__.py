"""Demo data for an empty installation: people, a schedule, a service, and an incident that climbs for real."""

from escalade.demo.content import load, loaded
from escalade.demo.removal import Removal, remove

__all__ = ["Removal", "load", "loaded", "remove"]
