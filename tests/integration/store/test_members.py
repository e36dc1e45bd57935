"""Members and API keys in the real database: what a key may do, until when, and what is recorded."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from footplate.domain.errors import Conflict, NotFound, Unauthenticated
from footplate.domain.organisations.members import ApiKey
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.sign_in import SignInMethod
from footplate.domain.pagination import Page
from footplate.store.resources import api_keys
from footplate.store.resources.api_keys import ApiKeys

from .cell import Cell, new_principal

ALL = Page(limit=100, include_archived=True)


async def create_admin(cell: Cell) -> Principal:
    keys = ApiKeys(cell.database)
    return await keys.authenticate(await keys.create_key(new_principal().organisation, "first", ["admin"]))


async def create_key(
    cell: Cell,
    admin: Principal,
    *,
    name: str = "laptop",
    roles: Sequence[str] = ("member",),
    member_id: str | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    async with cell.units.unit(admin, None) as unit:
        return await unit.create_api_key(admin, name=name, member_id=member_id, roles=roles, expires_at=expires_at)


async def is_valid(cell: Cell, secret: str) -> bool:
    """Whether another replica, which has nothing cached, accepts the key."""
    try:
        await ApiKeys(cell.database).authenticate(secret)
    except Unauthenticated:
        return False
    return True


async def test_a_key_acts_for_its_member_with_the_roles_of_both(cell: Cell) -> None:
    admin = await create_admin(cell)
    async with cell.units.unit(admin, None) as unit:
        ann = await unit.create_member(admin, kind=PrincipalKind.PERSON, name="ann", roles=["operator"])
    _, secret = await create_key(cell, admin, roles=["operator", "admin"], member_id=ann.id)
    principal = await ApiKeys(cell.database).authenticate(secret)
    assert (principal.id, principal.name, principal.roles) == (ann.id, "ann", frozenset({"operator"}))
    async with cell.units.unit(admin, None) as unit:
        await unit.update_member(admin, ann.id, roles=["viewer"], disabled=None)
    assert (await ApiKeys(cell.database).authenticate(secret)).roles == {"viewer"}
    async with cell.units.unit(admin, None) as unit:
        assert (await unit.update_member(admin, ann.id, roles=None, disabled=True)).roles == ["viewer"]
    assert not await is_valid(cell, secret)
    async with cell.units.unit(admin, None) as unit:
        await unit.update_member(admin, ann.id, roles=None, disabled=False)
    assert not await is_valid(cell, secret), "a key of a disabled member is revoked for good"


async def test_revoked_rotated_and_expired_keys_are_refused(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "CACHE_SECONDS", 0.0)
    admin = await create_admin(cell)
    key, secret = await create_key(cell, admin)
    async with cell.units.unit(admin, None) as unit:
        _, rotated = await unit.rotate_api_key(admin, key.id)
    assert [await is_valid(cell, each) for each in (secret, rotated)] == [False, True]
    async with cell.units.unit(admin, None) as unit:
        assert (await unit.revoke_api_key(admin, key.id)).revoked_at is not None
    assert not await is_valid(cell, rotated)
    with pytest.raises(Conflict, match="is revoked"):
        async with cell.units.unit(admin, None) as unit:
            await unit.rotate_api_key(admin, key.id)
    _, late = await create_key(cell, admin, name="late", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert not await is_valid(cell, late)


async def test_a_list_shows_owner_and_last_use_and_no_secret(cell: Cell) -> None:
    admin = await create_admin(cell)
    key, secret = await create_key(cell, admin)
    assert await is_valid(cell, secret)
    listed = {each.id: each for each in await cell.reads.api_keys(admin, ALL)}
    assert (listed[key.id].member_name, listed[key.id].created_by) == ("laptop", admin.id)
    assert listed[key.id].last_used_at is not None
    assert {each.name for each in await cell.reads.members(admin, ALL)} == {"first", "laptop"}
    async with cell.database.connection() as connection:
        rows = await connection.fetch("select to_jsonb(k)::text as row from api_keys k")
    assert not any(secret in row["row"] for row in rows)


async def test_a_member_shows_with_what_it_can_sign_in(cell: Cell) -> None:
    admin = await create_admin(cell)
    async with cell.units.unit(admin, None) as unit:
        ann = await unit.create_member(admin, kind=PrincipalKind.PERSON, name="ann", roles=["member"])
    assert [*ann.sign_in_methods] == []
    past = datetime.now(UTC) - timedelta(seconds=1)
    await create_key(cell, admin, name="expired", member_id=ann.id, expires_at=past)
    assert [*(await cell.reads.member(admin, ann.id)).sign_in_methods] == []
    await create_key(cell, admin, member_id=ann.id)
    assert [*(await cell.reads.member(admin, ann.id)).sign_in_methods] == [SignInMethod.API_KEY]
    listed = {each.id: each for each in await cell.reads.members(admin, ALL)}
    assert [*listed[ann.id].sign_in_methods] == [SignInMethod.API_KEY]
    async with cell.units.unit(admin, None) as unit:
        assert [*(await unit.update_member(admin, ann.id, roles=None, disabled=True)).sign_in_methods] == []


async def test_names_are_unique_among_the_keys_of_a_member(cell: Cell) -> None:
    """A request to create a key that is sent again fails, because its response is not stored."""
    admin = await create_admin(cell)
    async with cell.units.unit(admin, None) as unit:
        bot = await unit.create_member(admin, kind=PrincipalKind.SERVICE, name="bot", roles=["member"])
    key, _ = await create_key(cell, admin, member_id=bot.id)
    with pytest.raises(Conflict, match="already has an API key"):
        await create_key(cell, admin, member_id=bot.id)
    async with cell.units.unit(admin, None) as unit:
        await unit.revoke_api_key(admin, key.id)
    await create_key(cell, admin, member_id=bot.id)


async def test_another_organisation_finds_no_member_and_no_key(cell: Cell) -> None:
    admin, stranger = await create_admin(cell), await create_admin(cell)
    key, secret = await create_key(cell, admin)
    with pytest.raises(NotFound):
        await cell.reads.api_key(stranger, key.id)
    for change in ("revoke_api_key", "rotate_api_key"):
        with pytest.raises(NotFound):
            async with cell.units.unit(stranger, None) as unit:
                await getattr(unit, change)(stranger, key.id)
    with pytest.raises(NotFound):
        await create_key(cell, stranger, member_id=admin.id)
    assert await is_valid(cell, secret)


async def test_changes_are_in_the_audit_trail(cell: Cell) -> None:
    admin = await create_admin(cell)
    key, _ = await create_key(cell, admin)
    async with cell.units.unit(admin, None) as unit:
        await unit.revoke_api_key(admin, key.id)
    async with cell.database.connection() as connection:
        rows = await connection.fetch(
            "select content ->> 'action' as action, principal from audit where organisation = $1 order by number",
            admin.organisation,
        )
    assert [(row["action"], row["principal"]) for row in rows] == [
        ("api_key.create", admin.id),
        ("api_key.revoke", admin.id),
    ]


async def test_a_member_whose_name_is_used_again_cannot_be_enabled(cell: Cell) -> None:
    admin = await create_admin(cell)
    async with cell.units.unit(admin, None) as unit:
        ann = await unit.create_member(admin, kind=PrincipalKind.PERSON, name="ann", roles=["member"])
        await unit.update_member(admin, ann.id, roles=None, disabled=True)
        other = await unit.create_member(admin, kind=PrincipalKind.PERSON, name="ann", roles=["member"])
    with pytest.raises(Conflict, match="name"):
        async with cell.units.unit(admin, None) as unit:
            await unit.update_member(admin, ann.id, roles=None, disabled=False)
    async with cell.units.unit(admin, None) as unit:
        await unit.update_member(admin, other.id, roles=None, disabled=True)
        assert (await unit.update_member(admin, ann.id, roles=None, disabled=False)).disabled_at is None
