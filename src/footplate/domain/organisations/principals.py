"""Principals: authenticated callers, each in one organisation, and the authors of messages."""

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
    team_ids: frozenset[str] = frozenset()
    project_ids: frozenset[str] | None = None
    """The projects that the API key is restricted to. None: it is not restricted."""


@dataclass(frozen=True, slots=True)
class Author:
    """The principal who sent the message that a turn processes."""

    id: str
    name: str | None = None
    kind: str | None = None
