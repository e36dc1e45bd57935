"""Principals: authenticated callers, each in one organisation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    organisation: str
    id: str
    name: str
    roles: frozenset[str]
