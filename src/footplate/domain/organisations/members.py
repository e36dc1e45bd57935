"""Members of an organisation (people and service accounts), their teams and API keys, and the interfaces that store
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.sign_in import SignInMethod
from footplate.domain.pagination import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    id: str
    kind: PrincipalKind
    name: str
    roles: Sequence[str]
    created_at: datetime
    disabled_at: datetime | None = None
    successor_id: str | None = None
    """The member who continues the work of this disabled member."""
    email: str | None = None
    """The email that the identity provider reported at the last sign-in."""
    sign_in_methods: Sequence[SignInMethod] = ()
    """`OIDC`: the member has signed in through the identity provider. `API_KEY`: it has a valid key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    id: str
    name: str
    member_ids: Sequence[str]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key without its secret, of which only a hash is stored."""

    id: str
    name: str
    member_id: str
    member_name: str
    roles: Sequence[str]
    """The roles that were given to the key. It has only those that the member has too."""
    created_at: datetime
    project_ids: Sequence[str] | None = None
    """The projects that the key is restricted to. None: all."""
    created_by: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    """Recorded at most once a minute."""


class MemberReads(Protocol):
    async def members(self, principal: Principal, page: Page) -> Sequence[Member]: ...
    async def member(self, principal: Principal, member_id: str) -> Member: ...
    async def teams(self, principal: Principal, page: Page) -> Sequence[Team]: ...
    async def team(self, principal: Principal, team_id: str) -> Team: ...
    async def api_keys(self, principal: Principal, page: Page) -> Sequence[ApiKey]: ...
    async def api_key(self, principal: Principal, key_id: str) -> ApiKey: ...


class MemberUnit(Protocol):
    """The part of the API's unit of work that changes members and API keys. Every change is in the audit trail."""

    async def create_member(
        self, principal: Principal, *, kind: PrincipalKind, name: str, roles: Sequence[str]
    ) -> Member: ...

    async def update_member(
        self,
        principal: Principal,
        member_id: str,
        *,
        roles: Sequence[str] | None,
        disabled: bool | None,
        successor_id: str | None = None,
    ) -> Member:
        """Change the roles, disable or enable a member. Disabling revokes its keys, and no further turn starts in its
        name. Its sessions, files and queued messages are handed over to the successor, if one is named.
        """

    async def check_members(self, principal: Principal, member_ids: Sequence[str]) -> None:
        """Raise `NotFound` unless all are people or service accounts that are not disabled."""

    async def create_team(self, principal: Principal, *, name: str, member_ids: Sequence[str]) -> Team: ...

    async def update_team(
        self, principal: Principal, team_id: str, *, add: Sequence[str], remove: Sequence[str]
    ) -> Team: ...

    async def create_api_key(
        self,
        principal: Principal,
        *,
        name: str,
        member_id: str | None,
        roles: Sequence[str],
        expires_at: datetime | None,
        project_ids: Sequence[str] | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key and return its secret, which cannot be read again. Without a member, the key gets a service
        account of its own.
        """

    async def revoke_api_key(self, principal: Principal, key_id: str) -> ApiKey: ...

    async def rotate_api_key(self, principal: Principal, key_id: str) -> tuple[ApiKey, str]:
        """Replace the secret. The old one stops working."""
