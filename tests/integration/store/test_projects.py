"""Projects, workspaces and the base commits of sessions, in the real database."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from footplate.domain import ids
from footplate.domain.audit import AuditFilter
from footplate.domain.errors import Conflict, Fenced, Forbidden, InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.pages import Page
from footplate.domain.permissions import Layer
from footplate.domain.principals import Principal
from footplate.domain.projects import Base, Choice, Project, Trust, Workspace
from footplate.domain.running import Claim
from footplate.store.policies import Rules

from .cell import AGENT, Cell, message, somebody

FIRST = Base("1" * 40, "main", "app")


async def create(cell: Cell, who: Principal, name: str = "app", path: str | None = None) -> Project:
    async with cell.units.unit(who, None) as unit:
        return await unit.create_project(
            who, name=name, path=path or name, url=None, branch=None, trust=Trust.NOTHING, metadata={}
        )


async def bundle(cell: Cell, who: Principal, project_ids: Sequence[str]) -> Workspace:
    async with cell.units.unit(who, None) as unit:
        return await unit.create_workspace(who, name=ids.new_id("name"), project_ids=project_ids, metadata={})


async def begin(cell: Cell, who: Principal, choice: Choice) -> str:
    async with cell.units.unit(who, None) as unit:
        place = await unit.create_environment(who, name=ids.new_id("name"), description=None, config={}, metadata={})
        session, _ = await unit.create_session(
            who,
            agent=AGENT,
            environment_id=place.id,
            title=None,
            metadata={},
            context={},
            inputs=[message("hello")],
            choice=choice,
        )
    return session.id


async def claimed(cell: Cell, who: Principal, session_id: str) -> Claim:
    claim = await cell.claims.claim(who.organisation, session_id, "wrkr_1")
    assert isinstance(claim, Claim)
    return claim


async def test_read_back_and_listed(cell: Cell) -> None:
    who = somebody()
    one, two = await create(cell, who, "one"), await create(cell, who, "two")
    assert await cell.reads.project(who, one.id) == one
    assert [row.id for row in await cell.reads.projects(who, Page(limit=5))] == [two.id, one.id]
    assert [row.id for row in await cell.reads.projects(who, Page(limit=5), path="one")] == [one.id]
    workspace = await bundle(cell, who, [two.id, one.id])
    assert await cell.reads.workspace(who, workspace.id) == workspace
    assert [row.id for row in await cell.reads.workspaces(who, Page(limit=5))] == [workspace.id]


async def test_name_and_path_are_taken_once_until_it_is_archived(cell: Cell) -> None:
    who = somebody()
    first = await create(cell, who)
    with pytest.raises(Conflict, match="named 'app' already exists"):
        await create(cell, who, path="elsewhere")
    with pytest.raises(Conflict, match="at this path already exists"):
        await create(cell, who, name="other", path="app")
    async with cell.units.unit(who, None) as unit:
        await unit.archive_project(who, first.id)
    assert (await create(cell, who)).id != first.id
    await create(cell, somebody())


@pytest.mark.requirement("K5")
async def test_session_takes_what_is_its_organisation_s_and_not_archived(cell: Cell) -> None:
    who, stranger = somebody(), somebody()
    project = await create(cell, who)
    workspace = await bundle(cell, who, [project.id])
    for choice in (Choice([project.id]), Choice(workspace_id=workspace.id)):
        with pytest.raises(NotFound):
            await begin(cell, stranger, choice)
        session = await cell.reads.session(who, await begin(cell, who, choice))
        assert (session.project_ids, session.workspace_id) == ([project.id], choice.workspace_id)
    with pytest.raises(InvalidRequest, match="without duplicates"):
        await begin(cell, who, Choice([project.id, project.id]))
    with pytest.raises(NotFound):
        await bundle(cell, stranger, [project.id])
    async with cell.units.unit(who, None) as unit:
        await unit.archive_project(who, project.id)
    for choice in (Choice([project.id]), Choice(workspace_id=workspace.id)):
        with pytest.raises(InvalidRequest, match="archived"):
            await begin(cell, who, choice)


async def test_turn_is_given_its_projects_as_they_are_now(cell: Cell) -> None:
    who = somebody()
    one, two = await create(cell, who, "one"), await create(cell, who, "two")
    session_id = await begin(cell, who, Choice([two.id, one.id]))
    async with cell.units.unit(who, None) as unit:
        await unit.update_project(who, two.id, lambda old: replace(old, trust=Trust.INSTRUCTIONS, branch="next"))
    claim = await claimed(cell, who, session_id)
    assert [(each.name, each.trust, each.branch, each.base) for each in claim.config.projects] == [
        ("two", Trust.INSTRUCTIONS, "next", None),
        ("one", Trust.NOTHING, None, None),
    ]
    turn = await cell.reads.turn(who, session_id, claim.turn_id)
    assert [each["trust"] for each in turn.config["projects"]] == ["instructions", "nothing"]  # type: ignore[index,union-attr,call-overload]


async def test_base_is_decided_once(cell: Cell) -> None:
    """Later callers receive the base that was decided first, whatever the repository contains by then."""
    who = somebody()
    project = await create(cell, who)
    session_id = await begin(cell, who, Choice([project.id]))
    first = await claimed(cell, who, session_id)
    assert await cell.turns.decide_base(first, project.id, FIRST) == FIRST
    assert await cell.turns.decide_base(first, project.id, Base(None, "other", "app")) == FIRST
    async with cell.units.unit(who, None) as unit:
        await unit.update_project(who, project.id, lambda old: replace(old, name="renamed"))
    second = await claimed(cell, who, session_id)
    assert [(each.name, each.base) for each in second.config.projects] == [("app", FIRST)]
    with pytest.raises(Fenced):
        await cell.turns.decide_base(first, project.id, FIRST)
    session = await cell.reads.session(who, session_id)
    assert session.bases == {project.id: FIRST.record}
    fork = await cell.fork(who, session_id)
    assert (fork.project_ids, fork.bases) == ([project.id], session.bases)


RULES: JsonObject = {"deny": ["Bash(rm *)"]}


async def place(cell: Cell, who: Principal, permissions: JsonObject | None = None, **more: str) -> Project:
    where = {"path": "app", "url": None, **more} if "url" not in more else {"path": None, **more}
    async with cell.units.unit(who, None) as unit:
        return await unit.create_project(
            who,
            name=more.get("name") or ids.new_id("name"),
            path=where["path"],
            url=where["url"],
            branch=None,
            trust=Trust.NOTHING,
            metadata={},
            permissions=permissions,
        )


async def in_force(cell: Cell, who: Principal, session_id: str, directory: str | None = None) -> list[JsonObject]:
    rules = Rules(cell.database, "/srv/{organisation}")
    found = await rules.rules(who.organisation, session_id, directory=directory)
    return [permissions for layer, permissions in found if layer is Layer.PROJECT]


async def test_rules_stay_with_the_place(cell: Cell) -> None:
    admin = replace(somebody(), roles=frozenset({"policy_admin"}))
    member = replace(admin, id="key_member", roles=frozenset({"member"}))
    ruled = await place(cell, admin, RULES)
    session_id = await begin(cell, member, Choice([ruled.id]))

    async def archive(who: Principal) -> None:
        async with cell.units.unit(who, None) as unit:
            await unit.archive_project(who, ruled.id)

    async def change(who: Principal, **fields: Any) -> Project:
        async with cell.units.unit(who, None) as unit:
            return await unit.update_project(who, ruled.id, lambda old: replace(old, **fields))

    for refused in (
        archive(member),
        change(member, trust=Trust.ALL),
        change(member, branch="other"),
        place(cell, member),
    ):
        with pytest.raises(Forbidden, match="'policy_admin'"):
            await refused
    assert (await change(member, metadata={"a": "b"})).permissions == RULES
    await archive(admin)
    with pytest.raises(Forbidden):
        await place(cell, member)
    again = await place(cell, admin)
    assert again.permissions == RULES
    other = await begin(cell, member, Choice([again.id]))
    assert await in_force(cell, member, other) == [RULES]
    async with cell.units.unit(admin, None) as unit:
        await unit.update_project(admin, again.id, lambda old: replace(old, permissions={"deny": ["Bash(mv *)"]}))
    assert await in_force(cell, member, session_id) == [{"deny": ["Bash(mv *)"]}]
    trail = await cell.reads.audit(admin, Page(limit=50, order="asc"), AuditFilter(kind="change"))
    assert [entry.content and entry.content["action"] for entry in trail] == [
        *("project.create", "project.update", "project.archive", "project.create", "project.update")
    ]
    assert {entry.principal for entry in trail} == {admin.id, member.id}


async def test_a_place_has_one_name(cell: Cell) -> None:
    admin = replace(somebody(), roles=frozenset({"admin"}))
    member = replace(admin, roles=frozenset())
    await place(cell, admin, RULES, url="https://git.example.com/team/app.git")
    for other in ("http://GIT.example.com:80/Team/app", "https://git.example.com./x/../team//%61pp.git/"):
        with pytest.raises(Forbidden):
            await place(cell, member, url=other)
    await place(cell, member, url="https://git.example.com/team/app2")


async def test_places_inside_and_around_a_ruled_one_deny_and_ask_the_same(cell: Cell) -> None:
    admin = replace(somebody(), roles=frozenset({"admin"}))
    await place(cell, admin, {**RULES, "allow": ["Bash(ls)"]}, path="team/app")
    for path in ("team", "team/app/sub"):
        made = await place(cell, replace(admin, roles=frozenset()), path=path)
        session_id = await begin(cell, admin, Choice([made.id]))
        assert RULES in await in_force(cell, admin, session_id)
    beside = await place(cell, admin, path="team/app2")
    assert RULES not in await in_force(cell, admin, await begin(cell, admin, Choice([beside.id])))
    plain = await cell.session(admin)
    assert await in_force(cell, admin, plain) == []
    assert {**RULES, "allow": ["Bash(ls)"]} in await in_force(
        cell, admin, plain, f"/srv/{admin.organisation}/team/../team/app"
    )
    assert RULES in await in_force(cell, admin, plain, "/srv/" + admin.organisation)
    assert RULES in await in_force(cell, admin, plain, "/srv")
    assert await in_force(cell, admin, plain, "/usr") == []


async def test_rules_for_paths_and_hooks_of_another_place_are_not_lost(cell: Cell) -> None:
    admin = replace(somebody(), roles=frozenset({"admin"}))
    hooks: JsonObject = {"PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command": "check"}]}]}
    await place(cell, admin, {"deny": ["Read(/secrets/**)"], "hooks": hooks}, path="team/app")
    (found,) = await in_force(cell, admin, await cell.session(admin), f"/srv/{admin.organisation}/team/app/secrets")
    assert found["deny"] == ["Read(/secrets/**)"]
    assert found["ask"] == ["Bash", "Edit", "Glob", "Grep", "Read"]
    assert found["hooks"] == hooks
