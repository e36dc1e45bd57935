"""Who can see a session or a file: only its owner, a team, or the whole organisation. Administrators see all."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from footplate.domain.errors import Forbidden
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import Permission, permissions_of

_ORGANISATION: Final = "organisation"
_OWNER: Final = "owner"


class Visibility(StrEnum):
    PRIVATE = "private"
    TEAM = "team"
    ORGANISATION = "organisation"


@dataclass(frozen=True, slots=True)
class Audience:
    """The members who can see a session or a file in addition to its owner."""

    visibility: Visibility = Visibility.ORGANISATION
    team_id: str | None = None

    @classmethod
    def load(cls, stored: str) -> "Audience":
        if stored == _ORGANISATION:
            return cls()
        return cls(Visibility.PRIVATE) if stored == _OWNER else cls(Visibility.TEAM, stored)

    def dump(self) -> str:
        if self.visibility is Visibility.TEAM:
            assert self.team_id is not None
            return self.team_id
        return _OWNER if self.visibility is Visibility.PRIVATE else _ORGANISATION


EVERYONE: Final = Audience()


@dataclass(frozen=True, slots=True)
class SessionAudience:
    """What decides who can see a session: its owner, its stored audience and its projects."""

    owner_id: str
    visible_to: str
    project_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class ViewFilter:
    """What a principal can see, as arguments of queries. None: no restriction."""

    audiences: list[str] | None
    """The owners and stored audiences that include the principal."""
    project_ids: list[str] | None
    """The projects that the principal's key is restricted to."""
    file_audiences: list[str] | None
    """As `audiences`, for files. Files belong to no project, so a restricted key sees only those of its principal."""

    @classmethod
    def of(cls, principal: Principal) -> "ViewFilter":
        audiences = None if _is_admin(principal) else [principal.id, *sorted(principal.team_ids), _ORGANISATION]
        if principal.project_ids is None:
            return cls(audiences, None, audiences)
        return cls(audiences, sorted(principal.project_ids), [principal.id])

    def includes(self, session: SessionAudience) -> bool:
        """Return whether the principal can see a session. The query `visible_sessions` decides the same."""
        if self.audiences is not None and not {session.owner_id, session.visible_to} & {*self.audiences}:
            return False
        return self.project_ids is None or (bool(session.project_ids) and session.project_ids <= {*self.project_ids})

    @property
    def is_unrestricted(self) -> bool:
        return self.audiences is None and self.project_ids is None


def check_may_share(principal: Principal, owner_id: str | None) -> None:
    """Raise `Forbidden` unless the principal is the owner or an administrator."""
    if principal.id != owner_id and not _is_admin(principal):
        raise Forbidden(
            "Only the owner and administrators can change who owns and who sees a session.",
            help_text="Ask the owner, or an administrator.",
        )


def check_may_choose(principal: Principal, audience: Audience) -> None:
    """Raise `Forbidden` for a team that the principal is not in."""
    if audience.team_id not in {None, *principal.team_ids} and not _is_admin(principal):
        raise Forbidden(
            f"You are not a member of the team {audience.team_id!r}.",
            help_text="List your teams with `footplate teams ls`, or ask an administrator to add you.",
        )


def _is_admin(principal: Principal) -> bool:
    return Permission.MANAGE_MEMBERS in permissions_of(principal.roles)
