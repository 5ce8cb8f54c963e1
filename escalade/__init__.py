"""Escalade pages people: alerts become incidents, incidents climb until somebody acknowledges."""

__version__ = "0.1.0"
