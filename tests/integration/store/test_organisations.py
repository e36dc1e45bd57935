"""Resources of another organisation are not found, with the same message as resources that do not exist."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import astuple, dataclass, replace

import pytest
import pytest_asyncio

from footplate.domain import ids
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.policy.permissions import Layer
from footplate.domain.ports.api import EventPage, ForkPoint, SessionFilter
from footplate.domain.ports.engine import NothingToClaim
from footplate.domain.projects.project import Trust
from footplate.domain.sessions.turns import Session
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.policies import SessionRuleLoader
from footplate.store.unit_of_work import UnitOfWork

from .cell import AGENT, Cell, message, new_principal

RULES: JsonObject = {"deny": ["Bash(rm *)"]}


@dataclass(frozen=True)
class OwnedResources:
    agent: str
    environment: str
    session: str
    turn: str
    project: str
    workspace: str


async def _create_session(unit: UnitOfWork, principal: Principal, environment: str) -> Session:
    session, _ = await unit.create_session(
        principal, agent=AGENT, environment_id=environment, title=None, metadata={}, context={}, inputs=()
    )
    return session


async def _fork_into(unit: UnitOfWork, principal: Principal, environment: str) -> None:
    """Forks a session of the caller's own into an environment that may not be the caller's."""
    own = await unit.create_environment(principal, name="own", description=None, config={}, metadata={})
    parent = await _create_session(unit, principal, own.id)
    await unit.fork_session(
        principal, parent.id, point=ForkPoint(), environment_id=environment, change=lambda session: session, inputs=()
    )


Read = Callable[[Cell, Principal, OwnedResources], Awaitable[object]]
Change = Callable[[UnitOfWork, Principal, OwnedResources], Awaitable[object]]

READS: dict[str, Read] = {
    "agent": lambda cell, who, of: cell.reads.agent(who, of.agent),
    "agent version": lambda cell, who, of: cell.reads.agent(who, of.agent, 1),
    "agent versions": lambda cell, who, of: cell.reads.agent_versions(who, of.agent, limit=5, before_version=None),
    "environment": lambda cell, who, of: cell.reads.environment(who, of.environment),
    "project": lambda cell, who, of: cell.reads.project(who, of.project),
    "workspace": lambda cell, who, of: cell.reads.workspace(who, of.workspace),
    "rules": lambda cell, who, of: SessionRuleLoader(cell.database).rules(who.organisation, of.session),
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
    "update project": lambda unit, who, of: unit.update_project(who, of.project, lambda p: p),
    "archive project": lambda unit, who, of: unit.archive_project(who, of.project),
    "update workspace": lambda unit, who, of: unit.update_workspace(who, of.workspace, lambda w: w),
    "archive workspace": lambda unit, who, of: unit.archive_workspace(who, of.workspace),
    "create session": lambda unit, who, of: _create_session(unit, who, of.environment),
    "fork into environment": lambda unit, who, of: _fork_into(unit, who, of.environment),
    "update session": lambda unit, who, of: unit.update_session(who, of.session, lambda s: s),
    "archive session": lambda unit, who, of: unit.archive_session(who, of.session),
    "delete session": lambda unit, who, of: unit.delete_session(who, of.session),
    "send": lambda unit, who, of: unit.send(who, of.session, [message("hello")]),
}


@pytest_asyncio.fixture(loop_scope="session")
async def owned(cell: Cell, principal: Principal) -> OwnedResources:
    async with cell.units.unit(principal, None) as unit:
        agent = await unit.create_agent(principal, name="a", definition={}, metadata={})
        environment = await unit.create_environment(principal, name="e", description=None, config={}, metadata={})
        project = await _create_project(unit, principal)
        workspace = await unit.create_workspace(principal, name="w", project_ids=[project], metadata={})
    session = await cell.session(principal, "go")
    claim = await cell.claim(session, principal)
    return OwnedResources(agent.id, environment.id, session, claim.turn_id, project, workspace.id)


async def _create_project(unit: UnitOfWork, principal: Principal, rules: JsonObject = RULES) -> str:
    project = await unit.create_project(
        principal, name="p", path="p", url=None, branch=None, trust=Trust.NOTHING, metadata={}, permissions=rules
    )
    return project.id


@pytest.mark.parametrize("name", READS)
async def test_resources_of_another_organisation_cannot_be_read(
    cell: Cell, principal: Principal, owned: OwnedResources, name: str
) -> None:
    await READS[name](cell, principal, owned)
    with pytest.raises(NotFound) as foreign:
        await READS[name](cell, new_principal(), owned)
    nowhere = OwnedResources(*(f"{value[:-8]}00000000" for value in astuple(owned)))
    with pytest.raises(NotFound) as missing:
        await READS[name](cell, principal, nowhere)
    assert _blank(str(foreign.value), owned) == _blank(str(missing.value), nowhere)


@pytest.mark.parametrize("name", CHANGES)
async def test_resources_of_another_organisation_cannot_be_changed(
    cell: Cell, principal: Principal, owned: OwnedResources, name: str
) -> None:
    before = await cell.all_rows(owned.session)
    with pytest.raises(NotFound):
        async with cell.units.unit(new_principal(), None) as unit:
            await CHANGES[name](unit, new_principal(), owned)
    assert await cell.all_rows(owned.session) == before
    assert (await cell.reads.agent(principal, owned.agent)).archived_at is None
    assert (await cell.reads.environment(principal, owned.environment)).archived_at is None
    assert (await cell.reads.project(principal, owned.project)).archived_at is None
    assert (await cell.reads.workspace(principal, owned.workspace)).archived_at is None


async def test_the_rules_of_another_organisations_project_do_not_apply(
    cell: Cell, principal: Principal, owned: OwnedResources
) -> None:
    """The API refuses such a session, so the row is changed directly."""
    async with cell.units.unit(stranger := new_principal(), None) as unit:
        foreign = await _create_project(unit, stranger, {"deny": ["Bash(mv *)"]})
    async with cell.database.connection() as connection:
        await connection.execute(
            "update sessions set project_ids = $2 where id = $1", owned.session, [foreign, owned.project]
        )
    for layers in (
        await SessionRuleLoader(cell.database).rules(principal.organisation, owned.session),
        (await cell.reads.rules_by_session(principal, [owned.session]))[owned.session].layers,
    ):
        assert [rules for layer, rules in layers if layer is Layer.PROJECT] == [RULES]


async def test_lists_show_only_resources_of_the_organisation(cell: Cell, owned: OwnedResources) -> None:
    stranger, page = new_principal(), Page(limit=10, include_archived=True)
    assert await cell.reads.agents(stranger, page) == []
    assert await cell.reads.environments(stranger, page) == []
    assert await cell.reads.sessions(stranger, page, SessionFilter()) == []


async def test_the_tail_and_the_engine_check_the_organisation_too(
    cell: Cell, principal: Principal, owned: OwnedResources
) -> None:
    assert await cell.reads.positions("org_other", owned.session, 0, 10) == []
    assert await cell.claims.claim("org_other", owned.session, "wrkr_2") == NothingToClaim()
    assert (await cell.head(owned.session))["holder"] == "wrkr_1"
    mine = replace(principal, id=ids.new_id(ids.API_KEY))
    assert (await cell.reads.session(mine, owned.session)).id == owned.session


def _blank(text: str, owned: OwnedResources) -> str:
    for value in astuple(owned):
        text = text.replace(value, "…")
    return text


async def test_no_key_is_created_for_an_organisation_name_with_a_path(cell: Cell) -> None:
    keys = ApiKeys(cell.database)
    with pytest.raises(InvalidRequest, match="is not a valid organisation name"):
        await keys.create_key("../../../../tmp/x", "key", ["admin"])
    async with cell.database.connection() as connection:
        await connection.execute("insert into organisations (id, name) values ('../x', '../x')")
        await connection.execute(
            "with owner as (insert into principals (id, organisation, kind, name, roles)"
            " values ('key_x', '../x', 'service', 'k', '{}') returning id)"
            " insert into api_keys (id, organisation, principal, name, secret_hash, roles)"
            " select id, '../x', id, 'k', $1, '{}' from owner",
            hashlib.sha256(b"fp_old").digest(),
        )
    with pytest.raises(InvalidRequest, match="cannot be used as a directory name"):
        await keys.authenticate("fp_old")
