"""In-memory fakes of members and API keys of one organisation."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.organisations.members import ApiKey, Member, Team
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.pagination import Page

Item = TypeVar("Item")
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class MemberWorld:
    members: dict[str, Member] = field(default_factory=dict)
    teams: dict[str, Team] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)


class FakeMemberReads:
    member_world: MemberWorld

    async def members(self, principal: Principal, page: Page) -> Sequence[Member]:
        return [*self.member_world.members.values()][: page.limit]

    async def member(self, principal: Principal, member_id: str) -> Member:
        return _find(self.member_world.members, "member", member_id)

    async def teams(self, principal: Principal, page: Page) -> Sequence[Team]:
        return [*self.member_world.teams.values()][: page.limit]

    async def team(self, principal: Principal, team_id: str) -> Team:
        return _find(self.member_world.teams, "team", team_id)

    async def api_keys(self, principal: Principal, page: Page) -> Sequence[ApiKey]:
        return [*self.member_world.keys.values()][: page.limit]

    async def api_key(self, principal: Principal, key_id: str) -> ApiKey:
        return _find(self.member_world.keys, "API key", key_id)


class FakeMemberUnit:
    member_world: MemberWorld

    async def create_member(
        self, principal: Principal, *, kind: PrincipalKind, name: str, roles: Sequence[str]
    ) -> Member:
        member = Member(id=ids.new_id(ids.MEMBER), kind=kind, name=name, roles=roles, created_at=_NOW)
        self.member_world.members[member.id] = member
        return member

    async def update_member(
        self,
        principal: Principal,
        member_id: str,
        *,
        roles: Sequence[str] | None,
        disabled: bool | None,
        successor_id: str | None = None,
    ) -> Member:
        member = _find(self.member_world.members, "member", member_id)
        changed = replace(
            member,
            roles=member.roles if roles is None else roles,
            disabled_at=_NOW if disabled else None,
            successor_id=successor_id,
        )
        self.member_world.members[member_id] = changed
        return changed

    async def check_members(self, principal: Principal, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            _find(self.member_world.members, "member", member_id)

    async def create_team(self, principal: Principal, *, name: str, member_ids: Sequence[str]) -> Team:
        team = Team(id=ids.new_id(ids.TEAM), name=name, member_ids=[], created_at=_NOW)
        self.member_world.teams[team.id] = team
        return await self.update_team(principal, team.id, add=member_ids, remove=[])

    async def update_team(
        self, principal: Principal, team_id: str, *, add: Sequence[str], remove: Sequence[str]
    ) -> Team:
        await self.check_members(principal, add)
        team = _find(self.member_world.teams, "team", team_id)
        team = replace(team, member_ids=sorted({*team.member_ids, *add} - {*remove}))
        self.member_world.teams[team_id] = team
        return team

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
        key_id = ids.new_id(ids.API_KEY)
        key = ApiKey(
            id=key_id,
            name=name,
            member_id=member_id or key_id,
            member_name=name,
            roles=roles,
            created_at=_NOW,
            created_by=principal.id,
            expires_at=expires_at,
            project_ids=project_ids,
        )
        self.member_world.keys[key_id] = key
        return key, f"secret of {key_id}"

    async def revoke_api_key(self, principal: Principal, key_id: str) -> ApiKey:
        key = replace(_find(self.member_world.keys, "API key", key_id), revoked_at=_NOW)
        self.member_world.keys[key_id] = key
        return key

    async def rotate_api_key(self, principal: Principal, key_id: str) -> tuple[ApiKey, str]:
        return _find(self.member_world.keys, "API key", key_id), f"another secret of {key_id}"


def _find(items: dict[str, Item], noun: str, item_id: str) -> Item:
    if item_id not in items:
        raise NotFound(noun, item_id)
    return items[item_id]
