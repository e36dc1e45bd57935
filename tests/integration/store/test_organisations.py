"""Whatever belongs to another organisation is not found, in the words that a thing which is not there gets."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.pages import Page
from footplate.domain.principals import Principal
from footplate.domain.running import Nothing
from footplate.domain.services import EventPage, SessionFilter
from footplate.store.units import Unit

from .cell import Cell, message, somebody


@dataclass(frozen=True)
class Owned:
    agent: str
    environment: str
    session: str
    turn: str


Read = Callable[[Cell, Principal, Owned], Awaitable[object]]
Change = Callable[[Unit, Principal, Owned], Awaitable[object]]

READS: dict[str, Read] = {
    "agent": lambda cell, who, of: cell.reads.agent(who, of.agent),
    "agent version": lambda cell, who, of: cell.reads.agent(who, of.agent, 1),
    "agent versions": lambda cell, who, of: cell.reads.agent_versions(who, of.agent, limit=5, before_version=None),
    "environment": lambda cell, who, of: cell.reads.environment(who, of.environment),
    "session": lambda cell, who, of: cell.reads.session(who, of.session),
    "events": lambda cell, who, of: cell.reads.events(who, of.session, EventPage(limit=5)),
    "turn": lambda cell, who, of: cell.reads.turn(who, of.session, of.turn),
    "turns": lambda cell, who, of: cell.reads.turns(who, of.session, limit=5, before=None),
}
CHANGES: dict[str, Change] = {
    "update agent": lambda unit, who, of: unit.update_agent(who, of.agent, expected_version=None, change=lambda a: a),
    "archive agent": lambda unit, who, of: unit.archive_agent(who, of.agent),
    "update environment": lambda unit, who, of: unit.update_environment(who, of.environment, lambda e: e),
    "archive environment": lambda unit, who, of: unit.archive_environment(who, of.environment),
    "delete environment": lambda unit, who, of: unit.delete_environment(who, of.environment),
    "update session": lambda unit, who, of: unit.update_session(who, of.session, lambda s: s),
    "archive session": lambda unit, who, of: unit.archive_session(who, of.session),
    "delete session": lambda unit, who, of: unit.delete_session(who, of.session),
    "send": lambda unit, who, of: unit.send(who, of.session, [message("hello")]),
}


@pytest_asyncio.fixture(loop_scope="session")
async def owned(cell: Cell, principal: Principal) -> Owned:
    async with cell.units.unit(principal, None) as unit:
        agent = await unit.create_agent(principal, name="a", definition={}, metadata={})
        environment = await unit.create_environment(principal, name="e", description=None, config={}, metadata={})
    session = await cell.session(principal, "go")
    claim = await cell.claim(session, principal)
    return Owned(agent.id, environment.id, session, claim.turn_id)


@pytest.mark.parametrize("name", READS)
async def test_reads(cell: Cell, principal: Principal, owned: Owned, name: str) -> None:
    await READS[name](cell, principal, owned)
    with pytest.raises(NotFound) as foreign:
        await READS[name](cell, somebody(), owned)
    nowhere = Owned(*(f"{value[:-8]}00000000" for value in (owned.agent, owned.environment, owned.session, owned.turn)))
    with pytest.raises(NotFound) as missing:
        await READS[name](cell, principal, nowhere)
    assert _blank(str(foreign.value), owned) == _blank(str(missing.value), nowhere)


@pytest.mark.parametrize("name", CHANGES)
async def test_changes(cell: Cell, principal: Principal, owned: Owned, name: str) -> None:
    before = await cell.everything(owned.session)
    with pytest.raises(NotFound):
        async with cell.units.unit(somebody(), None) as unit:
            await CHANGES[name](unit, somebody(), owned)
    assert await cell.everything(owned.session) == before
    assert (await cell.reads.agent(principal, owned.agent)).archived_at is None
    assert (await cell.reads.environment(principal, owned.environment)).archived_at is None


async def test_lists_show_only_what_is_ones_own(cell: Cell, owned: Owned) -> None:
    stranger, page = somebody(), Page(limit=10, include_archived=True)
    assert await cell.reads.agents(stranger, page) == []
    assert await cell.reads.environments(stranger, page) == []
    assert await cell.reads.sessions(stranger, page, SessionFilter()) == []


async def test_the_tail_and_the_engine_ask_for_the_organisation_too(
    cell: Cell, principal: Principal, owned: Owned
) -> None:
    assert await cell.reads.positions("org_other", owned.session, 0, 10) == []
    assert await cell.claims.claim("org_other", owned.session, "wrkr_2") == Nothing()
    assert (await cell.head(owned.session))["holder"] == "wrkr_1"
    mine = replace(principal, id=ids.new_id(ids.API_KEY))
    assert (await cell.reads.session(mine, owned.session)).id == owned.session


def _blank(text: str, owned: Owned) -> str:
    for value in (owned.agent, owned.environment, owned.session, owned.turn):
        text = text.replace(value, "…")
    return text
