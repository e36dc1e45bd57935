"""Defines `Principal`: an authenticated caller, who belongs to one organisation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    organisation: str
    id: str
    name: str
    roles: frozenset[str]
