"""Projects, workspaces and the base commits of sessions, in the real database."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from footplate.domain import ids
from footplate.domain.audit import AuditFilter
from footplate.domain.errors import Conflict, Fenced, Forbidden, InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.policy.permissions import Layer
from footplate.domain.ports.engine import Claim
from footplate.domain.projects.project import BaseCommit, Project, ProjectSelection, Trust, Workspace
from footplate.store.resources.policies import SessionRuleLoader

from .cell import AGENT, Cell, message, new_principal

FIRST = BaseCommit("1" * 40, "main", "app")


async def create_project(cell: Cell, principal: Principal, name: str = "app", path: str | None = None) -> Project:
    async with cell.units.unit(principal, None) as unit:
        return await unit.create_project(
            principal, name=name, path=path or name, url=None, branch=None, trust=Trust.NOTHING, metadata={}
        )


async def create_workspace(cell: Cell, principal: Principal, project_ids: Sequence[str]) -> Workspace:
    async with cell.units.unit(principal, None) as unit:
        return await unit.create_workspace(principal, name=ids.new_id("name"), project_ids=project_ids, metadata={})


async def start_session(cell: Cell, principal: Principal, choice: ProjectSelection) -> str:
    async with cell.units.unit(principal, None) as unit:
        environment = await unit.create_environment(
            principal, name=ids.new_id("name"), description=None, config={}, metadata={}
        )
        session, _ = await unit.create_session(
            principal,
            agent=AGENT,
            environment_id=environment.id,
            title=None,
            metadata={},
            context={},
            inputs=[message("hello")],
            selection=choice,
        )
    return session.id


async def claim_turn(cell: Cell, principal: Principal, session_id: str) -> Claim:
    claim = await cell.claims.claim(principal.organisation, session_id, "wrkr_1")
    assert isinstance(claim, Claim)
    return claim


async def test_projects_and_workspaces_are_read_back_and_listed(cell: Cell) -> None:
    principal = new_principal()
    one, two = await create_project(cell, principal, "one"), await create_project(cell, principal, "two")
    assert await cell.reads.project(principal, one.id) == one
    assert [row.id for row in await cell.reads.projects(principal, Page(limit=5))] == [two.id, one.id]
    assert [row.id for row in await cell.reads.projects(principal, Page(limit=5), path="one")] == [one.id]
    workspace = await create_workspace(cell, principal, [two.id, one.id])
    assert await cell.reads.workspace(principal, workspace.id) == workspace
    assert [row.id for row in await cell.reads.workspaces(principal, Page(limit=5))] == [workspace.id]


async def test_name_and_path_are_unique_among_projects_that_are_not_archived(cell: Cell) -> None:
    principal = new_principal()
    first = await create_project(cell, principal)
    with pytest.raises(Conflict, match="named 'app' already exists"):
        await create_project(cell, principal, path="elsewhere")
    with pytest.raises(Conflict, match="at this path already exists"):
        await create_project(cell, principal, name="other", path="app")
    async with cell.units.unit(principal, None) as unit:
        await unit.archive_project(principal, first.id)
    assert (await create_project(cell, principal)).id != first.id
    await create_project(cell, new_principal())


@pytest.mark.requirement("K5")
async def test_a_session_accepts_only_projects_of_its_organisation_that_are_not_archived(cell: Cell) -> None:
    principal, stranger = new_principal(), new_principal()
    project = await create_project(cell, principal)
    workspace = await create_workspace(cell, principal, [project.id])
    for choice in (ProjectSelection([project.id]), ProjectSelection(workspace_id=workspace.id)):
        with pytest.raises(NotFound):
            await start_session(cell, stranger, choice)
        session = await cell.reads.session(principal, await start_session(cell, principal, choice))
        assert (session.project_ids, session.workspace_id) == ([project.id], choice.workspace_id)
    with pytest.raises(InvalidRequest, match="without duplicates"):
        await start_session(cell, principal, ProjectSelection([project.id, project.id]))
    with pytest.raises(NotFound):
        await create_workspace(cell, stranger, [project.id])
    async with cell.units.unit(principal, None) as unit:
        await unit.archive_project(principal, project.id)
    for choice in (ProjectSelection([project.id]), ProjectSelection(workspace_id=workspace.id)):
        with pytest.raises(InvalidRequest, match="archived"):
            await start_session(cell, principal, choice)


async def test_a_turn_receives_the_current_state_of_its_projects(cell: Cell) -> None:
    principal = new_principal()
    one, two = await create_project(cell, principal, "one"), await create_project(cell, principal, "two")
    session_id = await start_session(cell, principal, ProjectSelection([two.id, one.id]))
    async with cell.units.unit(principal, None) as unit:
        await unit.update_project(principal, two.id, lambda old: replace(old, trust=Trust.INSTRUCTIONS, branch="next"))
    claim = await claim_turn(cell, principal, session_id)
    assert [(each.name, each.trust, each.branch, each.base) for each in claim.config.projects] == [
        ("two", Trust.INSTRUCTIONS, "next", None),
        ("one", Trust.NOTHING, None, None),
    ]
    turn = await cell.reads.turn(principal, session_id, claim.turn_id)
    assert [each["trust"] for each in turn.config["projects"]] == ["instructions", "nothing"]  # pyrefly: ignore[bad-index, not-iterable, unsupported-operation]


async def test_a_base_is_decided_once(cell: Cell) -> None:
    """Later callers receive the base that was decided first, whatever the repository contains by then."""
    principal = new_principal()
    project = await create_project(cell, principal)
    session_id = await start_session(cell, principal, ProjectSelection([project.id]))
    first = await claim_turn(cell, principal, session_id)
    assert await cell.turns.decide_base(first, project.id, FIRST) == FIRST
    assert await cell.turns.decide_base(first, project.id, BaseCommit(None, "other", "app")) == FIRST
    async with cell.units.unit(principal, None) as unit:
        await unit.update_project(principal, project.id, lambda old: replace(old, name="renamed"))
    second = await claim_turn(cell, principal, session_id)
    assert [(each.name, each.base) for each in second.config.projects] == [("app", FIRST)]
    with pytest.raises(Fenced):
        await cell.turns.decide_base(first, project.id, FIRST)
    session = await cell.reads.session(principal, session_id)
    assert session.bases == {project.id: FIRST.record}
    fork = await cell.fork(principal, session_id)
    assert (fork.project_ids, fork.bases) == ([project.id], session.bases)


RULES: JsonObject = {"deny": ["Bash(rm *)"]}


async def create_project_at(
    cell: Cell, principal: Principal, permissions: JsonObject | None = None, **more: str
) -> Project:
    location = {"path": "app", "url": None, **more} if "url" not in more else {"path": None, **more}
    async with cell.units.unit(principal, None) as unit:
        return await unit.create_project(
            principal,
            name=more.get("name") or ids.new_id("name"),
            path=location["path"],
            url=location["url"],
            branch=None,
            trust=Trust.NOTHING,
            metadata={},
            permissions=permissions,
        )


async def project_rules(
    cell: Cell, principal: Principal, session_id: str, directory: str | None = None
) -> list[JsonObject]:
    rules = SessionRuleLoader(cell.database, "/srv/{organisation}")
    found = await rules.rules(principal.organisation, session_id, directory=directory)
    return [permissions for layer, permissions in found if layer is Layer.PROJECT]


async def test_rules_stay_with_the_location_of_a_project(cell: Cell) -> None:
    admin = replace(new_principal(), roles=frozenset({"policy_admin"}))
    member = replace(admin, id="key_member", roles=frozenset({"member"}))
    ruled = await create_project_at(cell, admin, RULES)
    session_id = await start_session(cell, member, ProjectSelection([ruled.id]))

    async def archive(principal: Principal) -> None:
        async with cell.units.unit(principal, None) as unit:
            await unit.archive_project(principal, ruled.id)

    async def change(principal: Principal, **fields: Any) -> Project:
        async with cell.units.unit(principal, None) as unit:
            return await unit.update_project(principal, ruled.id, lambda old: replace(old, **fields))

    for refused in (
        archive(member),
        change(member, trust=Trust.ALL),
        change(member, branch="other"),
        create_project_at(cell, member),
    ):
        with pytest.raises(Forbidden, match="'policy_admin'"):
            await refused
    assert (await change(member, metadata={"a": "b"})).permissions == RULES
    await archive(admin)
    with pytest.raises(Forbidden):
        await create_project_at(cell, member)
    again = await create_project_at(cell, admin)
    assert again.permissions == RULES
    other = await start_session(cell, member, ProjectSelection([again.id]))
    assert await project_rules(cell, member, other) == [RULES]
    async with cell.units.unit(admin, None) as unit:
        await unit.update_project(admin, again.id, lambda old: replace(old, permissions={"deny": ["Bash(mv *)"]}))
    assert await project_rules(cell, member, session_id) == [{"deny": ["Bash(mv *)"]}]
    trail = await cell.reads.audit(admin, Page(limit=50, order="asc"), AuditFilter(kind="change"))
    assert [entry.content and entry.content["action"] for entry in trail] == [
        *("project.create", "project.update", "project.archive", "project.create", "project.update")
    ]
    assert {entry.principal for entry in trail} == {admin.id, member.id}


async def test_spellings_of_one_url_are_one_location(cell: Cell) -> None:
    admin = replace(new_principal(), roles=frozenset({"admin"}))
    member = replace(admin, roles=frozenset())
    await create_project_at(cell, admin, RULES, url="https://git.example.com/team/app.git")
    for other in ("http://GIT.example.com:80/Team/app", "https://git.example.com./x/../team//%61pp.git/"):
        with pytest.raises(Forbidden):
            await create_project_at(cell, member, url=other)
    await create_project_at(cell, member, url="https://git.example.com/team/app2")


async def test_rules_apply_to_projects_inside_and_around_a_location(cell: Cell) -> None:
    admin = replace(new_principal(), roles=frozenset({"admin"}))
    await create_project_at(cell, admin, {**RULES, "allow": ["Bash(ls)"]}, path="team/app")
    for path in ("team", "team/app/sub"):
        made = await create_project_at(cell, replace(admin, roles=frozenset()), path=path)
        session_id = await start_session(cell, admin, ProjectSelection([made.id]))
        assert RULES in await project_rules(cell, admin, session_id)
    beside = await create_project_at(cell, admin, path="team/app2")
    assert RULES not in await project_rules(
        cell, admin, await start_session(cell, admin, ProjectSelection([beside.id]))
    )
    plain = await cell.session(admin)
    assert await project_rules(cell, admin, plain) == []
    assert {**RULES, "allow": ["Bash(ls)"]} in await project_rules(
        cell, admin, plain, f"/srv/{admin.organisation}/team/../team/app"
    )
    assert RULES in await project_rules(cell, admin, plain, "/srv/" + admin.organisation)
    assert RULES in await project_rules(cell, admin, plain, "/srv")
    assert await project_rules(cell, admin, plain, "/usr") == []


async def test_path_rules_and_hooks_of_another_location_still_apply(cell: Cell) -> None:
    admin = replace(new_principal(), roles=frozenset({"admin"}))
    hooks: JsonObject = {"PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command": "check"}]}]}
    await create_project_at(cell, admin, {"deny": ["Read(/secrets/**)"], "hooks": hooks}, path="team/app")
    (found,) = await project_rules(
        cell, admin, await cell.session(admin), f"/srv/{admin.organisation}/team/app/secrets"
    )
    assert found["deny"] == ["Read(/secrets/**)"]
    assert found["ask"] == ["Bash", "Edit", "Glob", "Grep", "Read"]
    assert found["hooks"] == hooks
