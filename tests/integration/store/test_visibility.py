"""Who can see sessions, approvals, audit entries, usage and files; and who continues the work of a disabled member."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from footplate.domain import audit, ids
from footplate.domain.audit import AuditFilter
from footplate.domain.errors import Forbidden, NotFound
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.visibility import EVERYONE, Audience, Visibility
from footplate.domain.pagination import Page
from footplate.domain.policy.policy_replay import CallFilter
from footplate.domain.ports.api import SessionFilter
from footplate.domain.ports.usage_report import UsageQuery
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.turns import Activity, ActivityState, Session, SessionToWake, StallReason
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.resources.usage_report import UsageReader

from .cell import COMPLETED, Cell
from .test_approvals import ASK
from .test_members import ALL, create_admin

PRIVATE = Audience(Visibility.PRIVATE)
EVERYWHERE = {"session", "list", "approvals", "audit", "calls", "usage"}
USED = Usage(input_tokens=10, output_tokens=5, requests=1)


async def _add_member(cell: Cell, admin: Principal, name: str, team: str | None = None) -> Principal:
    async with cell.units.unit(admin, None) as unit:
        member = await unit.create_member(admin, kind=PrincipalKind.PERSON, name=name, roles=["member"])
        if team is not None:
            await unit.update_team(admin, team, add=[member.id], remove=[])
    teams = frozenset({team} if team else ())
    return Principal(admin.organisation, member.id, name, frozenset({"member"}), teams)


async def _add_team(cell: Cell, admin: Principal) -> str:
    async with cell.units.unit(admin, None) as unit:
        return (await unit.create_team(admin, name="platform", member_ids=[])).id


async def _share(
    cell: Cell, principal: Principal, session_id: str, audience: Audience, owner: str | None = None
) -> None:
    def change(session: Session) -> Session:
        return replace(session, audience=audience, owner_id=owner or session.owner_id)

    async with cell.units.unit(principal, None) as unit:
        await unit.update_session(principal, session_id, change)


async def _session_with_a_call(cell: Cell, owner: Principal, audience: Audience) -> str:
    """Creates a session with one completed turn, and one that waits for approval."""
    session_id = await cell.session(owner, "one", "two")
    await _share(cell, owner, session_id, audience)
    claim = await cell.claim(session_id, owner)
    await cell.turns.append(claim, [], usage=USED)
    await cell.turns.finish(claim, COMPLETED)
    asked = events.tool_use("bash", {"command": "make"}, call_id="toolu_1", decision=ASK)
    claim = await cell.claim(session_id, owner)
    await cell.turns.append(claim, [asked])
    return session_id


async def _seen_by(cell: Cell, principal: Principal, session_id: str) -> set[str]:
    """Returns the places where this principal finds the session."""
    seen = set()
    with suppress(NotFound):
        await cell.reads.check_session_visible(principal, session_id)
        seen.add("session")
    if session_id in {each.id for each in await cell.reads.sessions(principal, ALL, SessionFilter())}:
        seen.add("list")
    approvals = await cell.reads.approvals(principal, ALL)
    if session_id in {each.session_id for each in approvals}:
        seen.add("approvals")
    if session_id in {each.session for each in await cell.reads.audit(principal, ALL, AuditFilter())}:
        seen.add("audit")
    calls = await cell.reads.calls(principal, CallFilter(), limit=100, after=None)
    if session_id in {each.session_id for each in calls}:
        seen.add("calls")
    now = datetime.now(UTC)
    for group in (frozenset[str](), frozenset({"session"})):
        query = UsageQuery(start=now - timedelta(days=1), end=now + timedelta(days=1), group_by=group, limit=100)  # pyrefly: ignore[bad-argument-type]
        if await UsageReader(cell.database).query_usage(principal, query):
            seen.add("usage")
    return seen


@pytest.mark.parametrize("visibility", list(Visibility))
async def test_only_the_audience_sees_a_session(cell: Cell, visibility: Visibility) -> None:
    admin = await create_admin(cell)
    team = await _add_team(cell, admin)
    ann, bob = [await _add_member(cell, admin, name, team) for name in ("ann", "bob")]
    eve = await _add_member(cell, admin, "eve")
    session_id = await _session_with_a_call(
        cell, ann, Audience(visibility, team if visibility is Visibility.TEAM else None)
    )
    expected = {Visibility.PRIVATE: (ann,), Visibility.TEAM: (ann, bob), Visibility.ORGANISATION: (ann, bob, eve)}
    for principal in (admin, ann, bob, eve):
        assert await _seen_by(cell, principal, session_id) == (
            EVERYWHERE if principal is admin or principal in expected[visibility] else set()
        ), principal.name
    stranger = await create_admin(cell)
    assert not await _seen_by(cell, stranger, session_id)


async def test_a_restricted_key_sees_only_sessions_of_its_projects(cell: Cell) -> None:
    admin = await create_admin(cell)
    session_id = await _session_with_a_call(cell, admin, EVERYONE)
    restricted = replace(admin, project_ids=frozenset({"proj_1"}))
    assert not await _seen_by(cell, restricted, session_id)
    async with cell.database.connection() as connection:
        await connection.execute("update sessions set project_ids = '{proj_1}' where id = $1", session_id)
    assert await _seen_by(cell, restricted, session_id) == EVERYWHERE
    async with cell.database.connection() as connection:
        await connection.execute("update sessions set project_ids = '{proj_1,proj_2}' where id = $1", session_id)
    assert not await _seen_by(cell, restricted, session_id)
    with pytest.raises(Forbidden, match="restricted to projects"):
        await cell.session(restricted, "one")


async def test_the_trail_of_a_deleted_private_session_stays_hidden(cell: Cell) -> None:
    admin = await create_admin(cell)
    ann, eve = [await _add_member(cell, admin, name) for name in ("ann", "eve")]
    for audience, seen in ((PRIVATE, False), (EVERYONE, True)):
        session_id = await cell.session(ann)
        await _share(cell, ann, session_id, audience)
        async with cell.units.unit(ann, None) as unit:
            await unit.record(ann, audit.build_change_entry("session.update", session_id))
        await cell.delete(ann, session_id)
        for principal, expected in ((admin, True), (eve, seen)):
            entries = await cell.reads.audit(principal, ALL, AuditFilter(session=session_id))
            assert bool(entries) is expected, (audience, principal.name)


async def test_only_the_owner_and_administrators_share_a_session(cell: Cell) -> None:
    admin = await create_admin(cell)
    team = await _add_team(cell, admin)
    ann, bob = [await _add_member(cell, admin, name) for name in ("ann", "bob")]
    session_id = await cell.session(ann)
    with pytest.raises(Forbidden, match="Only the owner"):
        await _share(cell, bob, session_id, PRIVATE)
    with pytest.raises(Forbidden, match="not a member of the team"):
        await _share(cell, ann, session_id, Audience(Visibility.TEAM, team))
    with pytest.raises(NotFound):
        await _share(cell, admin, session_id, EVERYONE, owner="memb_none")
    await _share(cell, ann, session_id, PRIVATE, owner=bob.id)
    session = await cell.reads.session(bob, session_id)
    assert (session.owner_name, session.created_by) == ("bob", ann.id)
    assert not await _seen_by(cell, ann, session_id)
    fork = await cell.fork(bob, session_id)
    assert (fork.audience, fork.owner_id) == (PRIVATE, bob.id), "a fork is no way around the parent's visibility"


async def test_a_private_file_belongs_to_its_owner(cell: Cell) -> None:
    admin = await create_admin(cell)
    ann, eve = [await _add_member(cell, admin, name) for name in ("ann", "eve")]
    file_id = ids.new_id(ids.FILE)
    async with cell.database.connection() as connection:
        await connection.execute(
            "insert into files (id, organisation, filename, mime_type, size_bytes, owner, visible_to)"
            " values ($1, $2, 'a', 'text/plain', 1, $3, 'owner')",
            *(file_id, ann.organisation, ann.id),
        )
    assert (await cell.reads.file(ann, file_id)).audience == PRIVATE
    assert [file.id for file in await cell.reads.files(admin, Page(limit=10))] == [file_id]
    assert not await cell.reads.files(eve, Page(limit=10))
    assert not await cell.reads.files(eve, Page(limit=10), ids=[file_id])
    with pytest.raises(NotFound):
        await cell.reads.file(eve, file_id)
    async with cell.units.unit(eve, None) as unit:
        with pytest.raises(NotFound):
            await unit.delete_file(eve, file_id)


async def _disable(cell: Cell, admin: Principal, member: Principal, successor: Principal | None = None) -> None:
    async with cell.units.unit(admin, None) as unit:
        await unit.update_member(
            admin, member.id, roles=None, disabled=True, successor_id=successor.id if successor else None
        )


async def test_queued_messages_of_a_disabled_member_wait_for_a_successor(cell: Cell) -> None:
    admin = await create_admin(cell)
    ann, bob, zoe = [await _add_member(cell, admin, name) for name in ("ann", "bob", "zoe")]
    session_id = await cell.session(ann, "one", "two")
    await _share(cell, ann, session_id, PRIVATE)
    running = await cell.claim(session_id, ann)
    await _disable(cell, admin, ann)
    await cell.turns.append(running, [events.message("still here")])  # what runs goes on
    await cell.turns.finish(running, COMPLETED)
    await cell.expect_nothing_to_claim(session_id, ann)
    stalled = Activity(ActivityState.STALLED, StallReason.AUTHOR_DISABLED)
    assert (await cell.reads.session(admin, session_id)).activity == stalled
    assert not (await cell.head(session_id))["wake"], "a session that waits costs the sweep nothing"

    await _disable(cell, admin, ann, bob)
    assert (await cell.head(session_id))["wake"]
    assert (await cell.reads.session(bob, session_id)).owner_id == bob.id
    assert await _seen_by(cell, bob, session_id) >= {"session", "list"}
    await _disable(cell, admin, bob)
    await cell.expect_nothing_to_claim(session_id, bob)
    await _disable(cell, admin, bob, zoe)  # follows ann too
    assert (await cell.head(session_id))["wake"]
    claim = await cell.claim(session_id, zoe)
    await cell.turns.finish(claim, COMPLETED)
    turns = await cell.rows("turns", session_id)
    assert [turn["principal"] for turn in turns] == [ann.id, zoe.id]


async def test_the_sweep_wakes_a_session_that_missed_the_change_of_its_author(cell: Cell) -> None:
    admin = await create_admin(cell)
    ann = await _add_member(cell, admin, "ann")
    session_id = await cell.session(ann, "one")
    async with cell.database.connection() as connection:
        await connection.execute(
            "update session_heads set wake = false, waits_for = $2 where session_id = $1", session_id, ann.id
        )
    found = await WorkerLeases(cell.database).find_sessions_to_wake(older_than=-1, lost_for=60, limit=1000)
    assert SessionToWake(ann.organisation, session_id) in found


async def test_messages_of_a_member_who_is_enabled_again_run(cell: Cell) -> None:
    admin = await create_admin(cell)
    ann = await _add_member(cell, admin, "ann")
    session_id = await cell.session(ann, "one")
    await _disable(cell, admin, ann)
    await cell.expect_nothing_to_claim(session_id, ann)
    async with cell.units.unit(admin, None) as unit:
        await unit.update_member(admin, ann.id, roles=None, disabled=False)
    assert (await cell.head(session_id))["wake"]
    await cell.claim(session_id, ann)
