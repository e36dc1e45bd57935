"""The inbox has everything that waits for a person, and nothing that the viewer cannot see."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound, Unavailable
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import Audience, Visibility
from footplate.domain.sessions import inbox, questions
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.inbox import (
    ConflictingMerge,
    InboxItem,
    InboxItemNotFound,
    InboxKind,
    InboxQuery,
    InboxUpdate,
    InboxView,
)
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.store.database import SQL

from .cell import COMPLETED, Cell, new_principal
from .test_approvals import decision_on, park, use
from .test_feed import read_feed
from .test_members import create_admin
from .test_questions import INPUT, reply_to
from .test_visibility import _add_member as add_member
from .test_visibility import _add_team as add_team
from .test_visibility import _share as share

FAILED = TurnOutcome(status=TurnStatus.FAILED, error_type="unknown_error", error_message="The model is gone.")
FILES: list[JsonObject] = [{"path": "a.py", "reason": "both changed it", "lines": [3], "last_commit": None}]
CONFLICT = ConflictingMerge(branch="main", message="It conflicts with 'main'.", files=FILES)


async def list_inbox(cell: Cell, principal: Principal, view: str = "all", **more: Any) -> list[InboxItem]:
    return [*await cell.reads.inbox(principal, InboxQuery(view=InboxView(view), limit=100, **more))]


async def fail(cell: Cell, principal: Principal, outcome: TurnOutcome = FAILED) -> tuple[str, str]:
    """Returns the session and its failed turn."""
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    await cell.turns.finish(claim, outcome)
    return session_id, claim.turn_id


async def update(cell: Cell, principal: Principal, item_id: str, **fields: Any) -> InboxItem:
    wanted = InboxUpdate(**fields, changes_assignee="assignee_id" in fields, changes_snooze="snoozed_until" in fields)
    async with cell.units.unit(principal, None) as unit:
        return await unit.update_inbox_item(principal, item_id, wanted)


async def dismiss(cell: Cell, principal: Principal, item_id: str) -> str:
    async with cell.units.unit(principal, None) as unit:
        return await unit.dismiss_inbox_item(principal, item_id)


async def notices(cell: Cell, principal: Principal) -> list[tuple[str, str]]:
    """Returns item and change of each notice in the feed."""
    found = [change.event.event for change in await read_feed(cell, principal) if change.event]
    return [(str(one.body["item_id"]), str(one.body["change"])) for one in found if one.type == inbox.CHANGED]


async def test_approvals_questions_and_failures_are_listed_until_they_are_done(cell: Cell) -> None:
    principal = new_principal()
    asking = await cell.session(principal, "Go.")
    call, asked = use("a"), questions.question(INPUT, call_id="b")
    await park(cell, await cell.claim(asking, principal), call)
    other = await cell.session(principal, "Go.")
    await park(cell, await cell.claim(other, principal), asked)
    failed, turn_id = await fail(cell, principal)
    first, second, third = await list_inbox(cell, principal)
    assert [one.kind for one in (first, second, third)] == [InboxKind.APPROVAL, InboxKind.QUESTION, InboxKind.FAILURE]
    assert (first.id, first.title, first.turn_number) == (call.id, "bash: make", 1)
    assert first.approval is not None
    assert first.approval.body["permission"] == {"rule": "Bash", "layer": "agent", "reason": "because"}
    assert (second.id, second.title) == (asked.id, "Which?")
    assert (third.id, third.session.id) == (turn_id, failed)
    assert third.failure == inbox.TurnFailure(
        code="failed", title="The turn failed", message="The model is gone.", turn_id=turn_id
    )
    assert await list_inbox(cell, principal, kind=InboxKind.FAILURE) == [third]
    assert await list_inbox(cell, principal, after=(first.created_at, first.id)) == [second, third]
    assert [await cell.reads.inbox_item(principal, one.id) for one in (first, second, third)] == [first, second, third]
    await cell.send(principal, asking, decision_on(call))
    await cell.send(principal, other, reply_to(asked, "A"))
    assert (asked.id, "closed") in await notices(cell, principal)
    await cell.send(principal, failed, "Again.")
    await cell.claim(failed, principal)
    assert await list_inbox(cell, principal) == []
    for gone in (call.id, turn_id, "turn_0"):
        with pytest.raises(InboxItemNotFound):
            await cell.reads.inbox_item(principal, gone)


async def test_only_what_failed_is_a_failure(cell: Cell) -> None:
    principal = new_principal()
    failures = [
        replace(COMPLETED, status=TurnStatus.LIMIT_REACHED),
        replace(COMPLETED, status=TurnStatus.TIMED_OUT),
        replace(COMPLETED, step_failed=True, error_message="Exit code 1."),
    ]
    for outcome in (COMPLETED, replace(COMPLETED, status=TurnStatus.INTERRUPTED), *failures):
        await fail(cell, principal, outcome)
    listed = await list_inbox(cell, principal)
    assert [one.failure.code for one in listed if one.failure] == ["limit_reached", "timed_out", "step_failed"]


async def test_failed_jobs_of_a_batch_are_not_listed(cell: Cell) -> None:
    principal = new_principal()
    session_id, _ = await fail(cell, principal)
    async with cell.database.connection() as connection:
        for kind, is_listed in (("children", True), ("batch", False)):
            group_id = ids.new_id(ids.GROUP)
            await connection.execute(
                "insert into session_groups (id, organisation, kind, principal, total) values ($1, $2, $3, $4, 1)",
                *(group_id, principal.organisation, kind, principal.id),
            )
            await connection.execute("update sessions set group_id = $2 where id = $1", session_id, group_id)
            assert bool(await list_inbox(cell, principal)) is is_listed


async def test_merge_conflicts_of_steps_and_of_parallel_sessions_name_the_files(cell: Cell) -> None:
    principal = new_principal()
    files: Any = FILES
    step = replace(COMPLETED, step_failed=True, error_message="x", data={"branch": "main", "conflicts": files})
    member: Any = {"session_id": "sesn_1", "files": "conflict", "conflicts": ["b.py: both added it"]}
    parallel = replace(COMPLETED, step_failed=True, data={"sessions": [{"files": "merged"}, member]})
    for outcome in (step, parallel):
        await fail(cell, principal, outcome)
    one, two = await list_inbox(cell, principal, kind=InboxKind.MERGE_CONFLICT)
    assert one.conflict is not None
    assert two.conflict is not None
    assert (one.title, one.conflict.files) == ("Merge conflict with main", files)
    assert [*two.conflict.files] == [{"path": "b.py", "reason": "both added it", "session_id": "sesn_1"}]


async def test_conflicts_of_requested_merges_are_listed_until_they_are_resolved(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal)

    async def record() -> None:
        async with cell.units.unit(principal, None) as unit:
            await unit.record_merge_conflict(principal, session_id, "proj_1", CONFLICT)

    await record()
    (first,) = await list_inbox(cell, principal)
    await record()  # the response was lost, and the client merged again
    assert await list_inbox(cell, principal) == [first]
    assert first.conflict is not None
    assert (first.conflict.branch, first.kind) == ("main", InboxKind.MERGE_CONFLICT)
    for _ in range(2):
        assert await dismiss(cell, principal, first.id) == session_id
    assert await list_inbox(cell, principal) == []
    await record()
    (second,) = await list_inbox(cell, principal)
    assert second.id != first.id
    async with cell.units.unit(principal, None) as unit:
        assert await unit.remove_merge_conflict(session_id, "proj_1", "main")
        assert not await unit.remove_merge_conflict(session_id, "proj_1", "main")
    assert await list_inbox(cell, principal) == []
    await record()
    await cell.expect_nothing_to_claim(session_id, principal)
    assert len(await list_inbox(cell, principal)) == 1, "a worker looked for work, and the session has not run"
    await cell.send(principal, session_id, "Go.")
    await cell.claim(session_id, principal)
    assert await list_inbox(cell, principal) == [], "the session has run since"
    await record()
    assert len(await list_inbox(cell, principal)) == 1


async def test_a_merge_that_succeeds_resolves_the_conflict_of_a_merge_step(cell: Cell) -> None:
    principal = new_principal()
    files: Any = FILES
    outcome = replace(COMPLETED, step_failed=True, error_message="x", data={"branch": "main", "conflicts": files})
    session_id, turn_id = await fail(cell, principal, outcome)
    async with cell.database.connection() as connection:
        await connection.execute("update sessions set project_ids = '{proj_1}' where id = $1", session_id)
    for project_id, branch in (("proj_2", "main"), ("proj_1", "other")):
        async with cell.units.unit(principal, None) as unit:
            assert not await unit.remove_merge_conflict(session_id, project_id, branch)
    assert [one.id for one in await list_inbox(cell, principal)] == [turn_id]
    async with cell.units.unit(principal, None) as unit:
        assert await unit.remove_merge_conflict(session_id, "proj_1", "main")
    assert await list_inbox(cell, principal) == []
    assert await notices(cell, principal) == [(turn_id, "closed")]


async def test_a_dismissal_counts_once_and_until_the_next_failure(cell: Cell) -> None:
    principal = new_principal()
    session_id, turn_id = await fail(cell, principal)
    cell.database.lose_next_commit = True
    with pytest.raises(Unavailable):
        await dismiss(cell, principal, turn_id)  # the process died before the commit
    assert len(await list_inbox(cell, principal)) == 1
    for _ in range(2):  # and the response of the first attempt was lost
        assert await dismiss(cell, principal, turn_id) == session_id
    assert await list_inbox(cell, principal) == []
    assert await notices(cell, principal) == [(turn_id, "dismissed")]
    await cell.send(principal, session_id, "Again.")
    claim = await cell.claim(session_id, principal)
    with pytest.raises(InboxItemNotFound):
        await dismiss(cell, principal, turn_id)
    await cell.turns.finish(claim, FAILED)
    assert [one.id for one in await list_inbox(cell, principal)] == [claim.turn_id]
    call = use("a")
    await park(cell, await cell.claim(await cell.session(principal, "Go."), principal), call)
    with pytest.raises(Conflict, match="waits for a person"):
        await dismiss(cell, principal, call.id)


async def test_who_ends_or_archives_a_session_has_seen_its_failure(cell: Cell) -> None:
    principal = new_principal()
    ended, _ = await fail(cell, principal)
    archived, _ = await fail(cell, principal)
    deleted, turn_id = await fail(cell, principal)
    await update(cell, principal, turn_id, snoozed_until=datetime.now(UTC))
    async with cell.units.unit(principal, None) as unit:
        await unit.record_merge_conflict(principal, ended, "proj_1", CONFLICT)
        end = SessionEnd(outcome=EndOutcome.FAILED, ended_by=principal.id)
        await unit.end_session(principal, ended, end)
        await unit.archive_session(principal, archived)
        await unit.record_merge_conflict(principal, deleted, "proj_1", CONFLICT)
        await unit.delete_session(principal, deleted)
    assert await list_inbox(cell, principal) == []
    for table in ("inbox_states", "merge_conflicts"):
        assert await cell.rows(table, deleted) == []


async def test_items_are_assigned_and_snoozed_and_come_back_by_time(cell: Cell) -> None:
    admin = await create_admin(cell)
    ann, bob = [await add_member(cell, admin, name) for name in ("Ann", "Bob")]
    _, item_id = await fail(cell, ann)

    async def views() -> list[str]:
        return [
            f"{who.name} {view}"
            for who in (ann, bob)
            for view in ("needs_you", "mine", "snoozed")
            if await list_inbox(cell, who, view)
        ]

    async def check(*expected: str) -> None:
        assert await views() == [*expected]
        for who in (ann, bob):
            counts = await cell.reads.inbox_counts(who)
            counted = [name for name in ("needs_you", "mine", "snoozed") if getattr(counts, name)]
            assert [f"{who.name} {name}" for name in counted] == [one for one in expected if who.name in one]

    await check("Ann needs_you", "Bob needs_you")
    for _ in range(2):  # repeated: the response was lost
        item = await update(cell, ann, item_id, assignee_id=bob.id)
    assert (item.assignee_id, item.assignee_name) == (bob.id, "Bob")
    await check("Bob needs_you", "Bob mine")
    assert await notices(cell, admin) == [(item_id, "updated")]
    await update(cell, bob, item_id, snoozed_until=datetime.now(UTC) + timedelta(hours=1))
    await check("Bob snoozed")
    async with cell.database.connection() as connection:
        await connection.execute("update inbox_states set snoozed_until = now() where item_id = $1", item_id)
    await check("Bob needs_you", "Bob mine")
    await update(cell, ann, item_id, assignee_id=None)
    await check("Ann needs_you", "Bob needs_you")
    with pytest.raises(NotFound):
        await update(cell, ann, item_id, assignee_id="memb_0")


@pytest.mark.timing
async def test_an_assignment_and_a_snooze_at_the_same_time_both_count(cell: Cell) -> None:
    admin = await create_admin(cell)
    bob = await add_member(cell, admin, "Bob")
    _, item_id = await fail(cell, admin)
    until = datetime.now(UTC) + timedelta(hours=1)

    async def assign_then_wait(read: asyncio.Event, go: asyncio.Event) -> None:
        async with cell.units.unit(admin, None) as unit:
            await unit.update_inbox_item(admin, item_id, InboxUpdate(assignee_id=bob.id, changes_assignee=True))
            read.set()
            await go.wait()

    assigned, go = asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(assign_then_wait(assigned, go))
    await assigned.wait()
    second = asyncio.create_task(update(cell, admin, item_id, snoozed_until=until))
    await asyncio.sleep(0.3)  # it has read the item, and waits for the first change
    go.set()
    await asyncio.gather(first, second)
    item = await cell.reads.inbox_item(admin, item_id)
    assert (item.assignee_id, item.snoozed_until) == (bob.id, until)


async def test_a_hidden_session_has_no_items_and_no_member_is_assigned_what_it_cannot_see(cell: Cell) -> None:
    admin = await create_admin(cell)
    team = await add_team(cell, admin)
    ann, bob = await add_member(cell, admin, "Ann", team), await add_member(cell, admin, "Bob")
    session_id, item_id = await fail(cell, ann)
    await update(cell, ann, item_id, assignee_id=bob.id)
    await share(cell, ann, session_id, Audience(Visibility.TEAM, team))
    assert [one.assignee_id for one in await list_inbox(cell, ann, "needs_you")] == [None], "Bob cannot see it any more"
    assert await list_inbox(cell, bob) == []
    assert (await cell.reads.inbox_counts(bob)).needs_you == 0
    for attempt in (cell.reads.inbox_item(bob, item_id), dismiss(cell, bob, item_id), update(cell, bob, item_id)):
        with pytest.raises(InboxItemNotFound):
            await attempt
    with pytest.raises(InvalidRequest, match="cannot see"):
        await update(cell, ann, item_id, assignee_id=bob.id)
    await update(cell, ann, item_id, assignee_id=admin.id)
    await dismiss(cell, ann, item_id)
    with pytest.raises(InboxItemNotFound):
        await dismiss(cell, bob, item_id)
    assert await list_inbox(cell, new_principal()) == []
    restricted = replace(ann, project_ids=frozenset({"proj_1"}))
    assert await list_inbox(cell, restricted) == []


async def test_the_inbox_reads_only_sessions_that_need_a_person(cell: Cell) -> None:
    """With 100,000 sessions, the plan finds the items by the partial indexes, whatever the statistics say."""
    principal = new_principal()
    await fail(cell, principal)
    async with cell.database.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            await connection.execute(
                "insert into session_heads (session_id, organisation)"
                " select 'sesn_x' || n, $1 from generate_series(1, 100000) n",
                principal.organisation,
            )
            await connection.execute("analyze session_heads, approvals, merge_conflicts, sessions, inbox_states")
            page = [principal.organisation, None, None, principal.id, "needs_you", None, None, None, None, 21]
            plans = [
                await connection.fetchval(f"explain (analyze, format json) {sql}", *arguments)
                for sql, arguments in (
                    (f"{SQL['inbox_page']}\n{SQL['inbox_details']}", page),
                    (SQL["inbox_counts"], page[:4]),
                    (f"{SQL['inbox_item']}\n{SQL['inbox_details']}", [*page[:3], ids.new_id(ids.TURN)]),
                )
            ]
        finally:
            await transaction.rollback()
    for (plan,) in plans:
        scanned = [*_scans(plan["Plan"])]
        assert "session_heads_with_problem" in str(scanned) or "session_heads_by_problem_turn" in str(scanned)
        heads = [node for node in scanned if node.get("Relation Name") == "session_heads"]
        assert [node for node in heads if node["Node Type"] == "Seq Scan"] == []
        assert plan["Execution Time"] < 100


def _scans(node: dict[str, Any]) -> list[dict[str, Any]]:
    found = [node] if "Scan" in node["Node Type"] else []
    return found + [scan for child in node.get("Plans", ()) for scan in _scans(child)]
