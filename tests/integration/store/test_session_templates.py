"""Templates of an organisation, and the sessions that each member has pinned."""

from dataclasses import replace

import pytest

from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import SessionFilter
from footplate.domain.sessions import session_templates
from footplate.domain.sessions.session_templates import SessionTemplateDefinition

from .cell import Cell, new_principal
from .test_feed import read_feed
from .test_members import create_admin
from .test_visibility import _add_member as add_member

NEWEST = Page(limit=10)


async def define(cell: Cell, principal: Principal, name: str = "Review") -> SessionTemplateDefinition:
    async with cell.units.unit(principal, None) as unit:
        environment = await unit.create_environment(
            principal, name=ids.new_id("name"), description=None, config={}, metadata={}
        )
    session = {"agent": "agent_1", "environment_id": environment.id, "title": "Review it"}
    return SessionTemplateDefinition(name=name, session={**session}, environment_id=environment.id)


async def test_a_template_is_created_changed_and_archived(cell: Cell) -> None:
    principal = new_principal()
    definition = await define(cell, principal)
    async with cell.units.unit(principal, None) as unit:
        made = await unit.create_session_template(principal, definition)
    assert await cell.reads.session_template(principal, made.id) == made
    with pytest.raises(Conflict, match="already exists"):  # also a request that is repeated without a key
        async with cell.units.unit(principal, None) as unit:
            await unit.create_session_template(principal, definition)
    for _ in range(2):
        async with cell.units.unit(principal, None) as unit:
            changed = replace(definition, description="For pull requests")
            updated = await unit.update_session_template(principal, made.id, lambda _, new=changed: new)
        assert (updated.description, updated.session) == ("For pull requests", definition.session)
    for _ in range(2):
        async with cell.units.unit(principal, None) as unit:
            assert (await unit.archive_session_template(principal, made.id)).archived_at is not None
    assert await cell.reads.session_templates(principal, NEWEST) == []
    with pytest.raises(InvalidRequest, match="archived"):
        async with cell.units.unit(principal, None) as unit:
            await unit.update_session_template(principal, made.id, lambda _: definition)
    async with cell.units.unit(principal, None) as unit:
        again = await unit.create_session_template(principal, definition)
    assert await cell.reads.session_templates(principal, NEWEST) == [again]
    with pytest.raises(NotFound):
        await cell.reads.session_template(new_principal(), again.id)
    events = [change.event.event for change in await read_feed(cell, principal) if change.event]
    notices = [one.body["change"] for one in events if one.type == session_templates.TEMPLATE_CHANGED]
    assert notices == ["created", "updated", "archived", "created"]


async def test_a_template_needs_what_a_session_needs(cell: Cell) -> None:
    principal = new_principal()
    definition = await define(cell, principal)
    for wrong in (
        replace(definition, environment_id="env_0"),
        replace(definition, project_ids=["proj_0"]),
    ):
        with pytest.raises(NotFound):
            async with cell.units.unit(principal, None) as unit:
                await unit.create_session_template(principal, wrong)


async def test_a_member_pins_sessions_for_itself(cell: Cell) -> None:
    admin = await create_admin(cell)
    ann, bob = [await add_member(cell, admin, name) for name in ("Ann", "Bob")]
    pinned, other = await cell.session(ann), await cell.session(ann)
    for expected in (True, False):  # repeated: the response was lost
        async with cell.units.unit(ann, None) as unit:
            assert await unit.pin_session(ann, pinned) is expected

    async def listed(who: Principal, *, is_pinned: bool) -> list[str]:
        return [one.id for one in await cell.reads.sessions(who, NEWEST, SessionFilter(is_pinned=is_pinned))]

    assert (await listed(ann, is_pinned=True), await listed(ann, is_pinned=False)) == ([pinned], [other])
    assert await listed(bob, is_pinned=True) == []
    assert await cell.reads.find_pinned_sessions(ann, [pinned, other]) == {pinned}
    (change,) = [
        one for one in await read_feed(cell, ann) if one.event and one.event.event.type == session_templates.PIN_CHANGED
    ]
    assert change.audience is not None
    assert (change.audience.owner_id, change.audience.visible_to) == (ann.id, "owner")
    async with cell.units.unit(ann, None) as unit:
        assert not await unit.pin_session(ann, "sesn_0")
        assert await unit.unpin_session(ann, pinned)
        assert not await unit.unpin_session(ann, pinned)
        await unit.pin_session(ann, pinned)
    await cell.delete(ann, pinned)
    assert await cell.rows("session_pins", pinned) == []
