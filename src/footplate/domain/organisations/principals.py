"""Principals: authenticated callers, each in one organisation."""

from dataclasses import dataclass
from enum import StrEnum


class PrincipalKind(StrEnum):
    PERSON = "person"
    SERVICE = "service"
    TEAM = "team"


@dataclass(frozen=True, slots=True)
class Principal:
    organisation: str
    id: str
    name: str
    roles: frozenset[str]
    """The roles of the API key that the owner of the key has too."""
