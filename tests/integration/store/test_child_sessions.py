"""Groups of child sessions on the real store: creation, ends, results, limits and cancellation."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from footplate.domain import ids
from footplate.domain.errors import Conflict, Fenced, InvalidRequest, NotFound
from footplate.domain.organisations.limits import EACH_MEMBER, LimitName, OrganisationLimitExceeded
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import Audience, Visibility
from footplate.domain.ports.api import Input
from footplate.domain.ports.child_store import StoppedSessions
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions import events, groups
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.groups import ChildLimits, ChildRequest
from footplate.domain.sessions.steps import OnFailure, PauseReason, StepDefinition, StepKind, StepState, WaitFor
from footplate.domain.sessions.turns import Activity, ActivityState, SessionToWake, StallReason, TurnStatus
from footplate.store.log.session_groups.child_sessions import ChildSessionStore, TooManySessions
from footplate.store.resources.limits import LimitStore
from footplate.store.retention.expiry import SessionExpiry
from footplate.store.retention.group_cancellation import GroupCancellation
from footplate.store.session_existence import SessionRegistry

from .cell import COMPLETED, Cell, awaiting, custom_tool_call, interrupt, text_of, tool_result_for, types

FAILED = replace(COMPLETED, step_failed=True, error_message="The command exited with code 1.", text="wrong")


def requests(count: int) -> list[ChildRequest]:
    step = StepDefinition(kind=StepKind.SHELL, command="true", on_failure=OnFailure.STOP)
    return [ChildRequest(name=f"child_{number}", steps=(step,)) for number in range(count)]


def store(cell: Cell, **limits: int) -> ChildSessionStore:
    return ChildSessionStore(cell.database, cell.objects, child_limits=ChildLimits(**limits))


async def start(
    cell: Cell,
    principal: Principal,
    count: int,
    *,
    max_running: int = 2,
    wait_for: WaitFor = WaitFor.ALL,
    picks_one: bool = False,
) -> tuple[Claim, events.Event, groups.SpawnedGroup]:
    """Starts a group in a turn of a new session, which then waits for it."""
    parent_id = await cell.session(principal, "go")
    claim = await cell.claim(parent_id, principal)
    call = groups.waiting_call("run_sessions", {}, call_id=claim.turn_id)
    await cell.turns.append(claim, [call])
    group, to_wake = await store(cell).spawn(
        claim, call.id, requests(count), max_running=max_running, wait_for=wait_for, picks_one=picks_one
    )
    assert [session[1] for session in to_wake] == list(group.session_ids[:max_running])
    assert await store(cell).wait(claim, call.id, group.id) is None
    await cell.turns.finish(claim, awaiting(call))
    return claim, call, group


async def run(cell: Cell, principal: Principal, session_id: str, outcome: object = COMPLETED) -> list[str]:
    claim = await cell.claim(session_id, principal)
    finished = await cell.turns.finish(claim, outcome)  # pyrefly: ignore[bad-argument-type]
    return [woken for _, woken, *_ in finished.to_wake]


async def test_the_usage_of_a_session_includes_all_sessions_below_it(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 2)
    child = await cell.claim(group.session_ids[0], principal)
    call = groups.waiting_call("run_sessions", {}, call_id=child.turn_id)
    used = events.Usage(input_tokens=10, output_tokens=1, requests=1, cost_microusd=5)
    await cell.turns.append(child, [call], usage=used)
    below, _ = await store(cell).spawn(child, call.id, requests(1), max_running=1, wait_for=WaitFor.ALL)
    grandchild = await cell.claim(below.session_ids[0], principal)
    await cell.turns.append(grandchild, [events.message("x")], usage=replace(used, cost_microusd=None))
    total = await cell.reads.total_usage(principal, claim.session_id)
    assert (total.sessions, total.usage) == (4, replace(used + used, cost_microusd=5))
    assert (await cell.reads.total_usage(principal, grandchild.session_id)).sessions == 1
    with pytest.raises(NotFound):
        await cell.reads.total_usage(replace(principal, organisation="other"), claim.session_id)


@pytest.mark.requirement("O5", "S9")
async def test_members_run_a_few_at_a_time_and_the_parent_gets_one_result(cell: Cell, principal: Principal) -> None:
    claim, call, group = await start(cell, principal, 4)
    first, second, third, fourth = group.session_ids
    assert (await cell.reads.playback(principal, third)).reason is PauseReason.GROUP
    await cell.expect_nothing_to_claim(third, principal)
    assert await run(cell, principal, second, FAILED) == [third]
    finished = await cell.turns.finish(await cell.claim(first, principal), COMPLETED)
    assert list(finished.to_wake) == [SessionToWake(principal.organisation, fourth, None, ends_when_idle=True)]
    assert await run(cell, principal, third) == []
    await cell.expect_nothing_to_claim(claim.session_id, principal)
    assert await run(cell, principal, fourth) == [claim.session_id]

    resumed = await cell.claim(claim.session_id, principal)
    assert resumed.turn_id == claim.turn_id
    result = await store(cell).wait(resumed, call.id, group.id)
    assert result is not None
    assert [member.outcome for member in result.members] == [
        EndOutcome.COMPLETED,
        EndOutcome.FAILED,
        EndOutcome.COMPLETED,
        EndOutcome.COMPLETED,
    ]
    assert not result.succeeded
    assert result.members[1].error == "The command exited with code 1."
    submitted = [
        position
        for position in await cell.positions(claim.session_id, principal)
        if position.event.type == events.USER_CUSTOM_TOOL_RESULT
    ]
    assert len(submitted) == 1
    assert text_of(submitted[0]).startswith("3 of 4 sessions completed.")


@pytest.mark.requirement("O5")
async def test_a_group_that_picks_one_needs_one_success(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 2, picks_one=True)
    waiting = (await cell.reads.session(principal, claim.session_id)).activity
    assert waiting == Activity(ActivityState.WAITING_FOR_RESULT, StallReason.SESSIONS)
    for session_id, outcome in zip(group.session_ids, (FAILED, COMPLETED), strict=True):
        await run(cell, principal, session_id, outcome)
    *_, submitted = await cell.positions(claim.session_id, principal)
    assert (submitted.event.type, submitted.event.body["is_error"]) == (events.USER_CUSTOM_TOOL_RESULT, False)
    assert text_of(submitted).startswith("1 of 2 sessions completed. Chosen: child_1.")


async def test_a_turn_that_also_waits_for_a_client_needs_its_result(cell: Cell, principal: Principal) -> None:
    claim = await cell.claim(await cell.session(principal, "go"), principal)
    call, custom = groups.waiting_call("wait_sessions", {}, call_id=claim.turn_id), custom_tool_call()
    await cell.turns.append(claim, [call, custom])
    group, _ = await store(cell).spawn(claim, call.id, requests(1))
    assert await store(cell).wait(claim, call.id, group.id) is None
    await cell.turns.finish(claim, awaiting(call, custom))
    waiting = (await cell.reads.session(principal, claim.session_id)).activity
    assert waiting == Activity(ActivityState.WAITING_FOR_RESULT)


async def test_the_output_of_a_check_is_not_the_text_of_a_session(cell: Cell, principal: Principal) -> None:
    claim = await cell.claim(await cell.session(principal, "go"), principal)
    call = groups.waiting_call("run_sessions", {}, call_id=claim.turn_id)
    await cell.turns.append(claim, [call])
    (request,) = requests(1)
    check = replace(request.steps[0], ends_session=True, is_check=True)
    group, _ = await store(cell).spawn(claim, call.id, [replace(request, steps=(*request.steps, check))])
    await run(cell, principal, group.session_ids[0], replace(COMPLETED, text="I say 1."))
    await run(cell, principal, group.session_ids[0], FAILED)
    result = await store(cell).wait(claim, call.id, group.id)
    assert result is not None
    (member,) = result.members
    assert (member.outcome, member.text, member.error) == (EndOutcome.FAILED, "I say 1.", FAILED.error_message)


async def test_repeated_call_finds_its_group(cell: Cell, principal: Principal) -> None:
    claim, call, group = await start(cell, principal, 3)
    await cell.send(principal, claim.session_id, interrupt())
    for session_id in group.session_ids:
        await run(cell, principal, session_id)
    resumed = await cell.claim(claim.session_id, principal)
    again, to_wake = await store(cell).spawn(resumed, call.id, requests(3))
    assert (again.id, again.session_ids, to_wake) == (group.id, group.session_ids, ())
    with pytest.raises(Fenced):
        await store(cell).spawn(claim, ids.new_id(ids.EVENT), requests(1))


async def test_first_success_ends_the_group_and_the_others_are_cancelled(cell: Cell, principal: Principal) -> None:
    claim, call, group = await start(cell, principal, 3, wait_for=WaitFor.FIRST_SUCCESS)
    first, second, third = group.session_ids
    assert await run(cell, principal, first, FAILED) == [third]
    running = await cell.claim(third, principal)
    assert await run(cell, principal, second) == [claim.session_id]
    stopped = await GroupCancellation(cell.database, cell.objects).cancel_abandoned(claim.session_id)
    assert stopped.to_nudge == [third]
    finished = await cell.turns.finish(running, replace(COMPLETED, status=TurnStatus.INTERRUPTED))
    assert not finished.to_wake
    resumed = await cell.claim(claim.session_id, principal)
    result = await store(cell).wait(resumed, call.id, group.id)
    assert result is not None
    assert result.succeeded
    assert [member.outcome for member in result.members] == [
        EndOutcome.FAILED,
        EndOutcome.COMPLETED,
        EndOutcome.CANCELLED,
    ]


@pytest.mark.requirement("O5")
async def test_interrupting_a_waiting_parent_cancels_its_children(cell: Cell, principal: Principal) -> None:
    claim, call, group = await start(cell, principal, 5)
    first = await cell.claim(group.session_ids[0], principal)
    cancellation = GroupCancellation(cell.database, cell.objects)
    assert await cancellation.cancel_abandoned(claim.session_id) == type(await cancellation.cancel_abandoned())()
    await cell.send(principal, claim.session_id, interrupt())
    stopped = await cancellation.cancel_abandoned(claim.session_id)
    assert set(stopped.to_nudge) == set(group.session_ids)
    published = {session_id: types(positions)[-1] for _, session_id, positions in stopped.to_publish}
    ended = dict.fromkeys(group.session_ids[1:], events.STATUS_TERMINATED)
    assert published == {group.session_ids[0]: events.USER_INTERRUPT, **ended}
    for session_id in group.session_ids[1:]:
        await cell.expect_nothing_to_claim(session_id, principal)
    finished = await cell.turns.finish(first, replace(COMPLETED, status=TurnStatus.INTERRUPTED))
    assert [woken for _, woken, *_ in finished.to_wake] == [claim.session_id]
    resumed = await cell.claim(claim.session_id, principal)
    assert (await cell.turns.claim_interrupts(resumed))[0]
    result = await store(cell).wait(resumed, call.id, group.id)
    assert result is not None
    assert {member.outcome for member in result.members} == {EndOutcome.CANCELLED}


async def test_children_end_with_the_turn_of_their_parent(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 3)
    await cell.send(principal, claim.session_id, "something else")
    await cell.claim(claim.session_id, principal)
    await GroupCancellation(cell.database, cell.objects).cancel_abandoned()
    for session_id in group.session_ids:
        await cell.expect_nothing_to_claim(session_id, principal)
        assert (await cell.reads.session(principal, session_id)).end is not None


async def test_limits_on_depth_and_number_are_refused_with_a_reason(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 3)
    child = await cell.claim(group.session_ids[0], principal)
    with pytest.raises(TooManySessions, match="1 levels below"):
        await store(cell, max_depth=1).spawn(child, ids.new_id(ids.EVENT), requests(1))
    with pytest.raises(TooManySessions, match="3 have not ended"):
        await store(cell, max_sessions=4).spawn(child, ids.new_id(ids.EVENT), requests(2))
    grandchildren, _ = await store(cell, max_sessions=4).spawn(child, ids.new_id(ids.EVENT), requests(1))
    assert len(grandchildren.session_ids) == 1
    with pytest.raises(InvalidRequest):
        await store(cell).spawn(child, ids.new_id(ids.EVENT), [])
    assert claim.session_id != child.session_id


async def test_only_the_server_submits_the_result_of_a_group(cell: Cell, principal: Principal) -> None:
    claim, call, _ = await start(cell, principal, 1)
    with pytest.raises(InvalidRequest, match="sessions"):
        await cell.send(principal, claim.session_id, tool_result_for(call.id))


async def test_deleted_member_counts_as_cancelled(cell: Cell, principal: Principal) -> None:
    claim, call, group = await start(cell, principal, 2)
    await run(cell, principal, group.session_ids[0])
    await cell.delete(principal, group.session_ids[1])
    resumed = await cell.claim(claim.session_id, principal)
    result = await store(cell).wait(resumed, call.id, group.id)
    assert result is not None
    assert result.members[1].error == "The session was deleted."
    await cell.delete(principal, group.session_ids[0])


@pytest.mark.requirement("S9")
async def test_members_that_end_at_once_are_counted_once_each(cell: Cell, principal: Principal) -> None:
    claim, call, group = await start(cell, principal, 12, max_running=12)
    claims = [await cell.claim(session_id, principal) for session_id in group.session_ids]
    await asyncio.gather(*(cell.turns.finish(one, COMPLETED) for one in claims))
    resumed = await cell.claim(claim.session_id, principal)
    result = await store(cell).wait(resumed, call.id, group.id)
    assert result is not None
    assert len(result.completed) == 12


async def test_message_of_a_call_is_sent_once(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 1)
    child_id = group.session_ids[0]
    for _ in range(2):
        await store(cell).send_message(claim, child_id, "hurry", "call_1")
    sent = types(await cell.positions(child_id, principal)).count(events.USER_MESSAGE)
    assert sent == 1


async def test_turn_that_has_ended_is_not_retried(cell: Cell, principal: Principal) -> None:
    _, _, group = await start(cell, principal, 1)
    child = await cell.claim(group.session_ids[0], principal)
    await cell.turns.finish(child, COMPLETED)
    with pytest.raises(Fenced):
        await cell.turns.reschedule(child, "unknown_error", "The database does not respond.")
    with pytest.raises(Fenced):
        await cell.turns.finish(child, FAILED)
    assert (await cell.head(child.session_id))["status"] == "terminated"
    assert types(await cell.positions(child.session_id, principal))[-1] == events.STATUS_TERMINATED


async def test_interrupt_that_arrives_while_the_turn_is_parked_on_a_group_is_obeyed(
    cell: Cell, principal: Principal
) -> None:
    parent_id = await cell.session(principal, "go")
    claim = await cell.claim(parent_id, principal)
    call = groups.waiting_call("run_sessions", {}, call_id=claim.turn_id)
    await cell.turns.append(claim, [call])
    group, _ = await store(cell).spawn(claim, call.id, requests(1))
    assert await store(cell).wait(claim, call.id, group.id) is None
    await cell.send(principal, parent_id, interrupt())
    finished = await cell.turns.finish(claim, awaiting(call))
    assert finished.has_more
    resumed = await cell.claim(parent_id, principal)
    assert resumed.turn_id == claim.turn_id
    assert (await cell.turns.claim_interrupts(resumed))[0]
    await cell.turns.finish(resumed, replace(COMPLETED, status=TurnStatus.INTERRUPTED))
    await GroupCancellation(cell.database, cell.objects).cancel_abandoned()
    assert (await cell.head(group.session_ids[0]))["status"] == "terminated"


async def test_interrupt_of_a_turn_that_waits_for_a_client_does_not_cancel_its_children(
    cell: Cell, principal: Principal
) -> None:
    parent_id = await cell.session(principal, "go")
    claim = await cell.claim(parent_id, principal)
    spawned, waited, asked = custom_tool_call(), custom_tool_call(), custom_tool_call()
    await cell.turns.append(claim, [spawned, waited, asked])
    running = [(await store(cell).spawn(claim, call.id, requests(1)))[0] for call in (spawned, waited)]
    assert await store(cell).wait(claim, waited.id, running[1].id) is None
    await cell.turns.finish(claim, awaiting(waited, asked))
    accepted = await cell.send(principal, parent_id, interrupt())
    assert not accepted.cancels_children
    await GroupCancellation(cell.database, cell.objects).cancel_abandoned()
    assert [(await cell.head(group.session_ids[0]))["status"] for group in running] == ["idle", "idle"]
    await cell.send(principal, parent_id, tool_result_for(asked.id))
    await cell.expect_nothing_to_claim(parent_id, principal)
    accepted = await cell.send(principal, parent_id, interrupt())
    assert accepted.cancels_children


@pytest.mark.requirement("O5")
async def test_archived_parent_stops_and_its_children_are_cancelled(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 1)
    async with cell.units.unit(principal, None) as unit:
        _, accepted = await unit.archive_session(principal, claim.session_id)
    assert accepted.cancels_children
    await GroupCancellation(cell.database, cell.objects).cancel_abandoned(claim.session_id)
    (child_id,) = group.session_ids
    assert (await cell.head(child_id))["status"] == "terminated"
    await cell.expect_nothing_to_claim(claim.session_id, principal)
    (turn,) = await cell.rows("turns", claim.session_id)
    assert turn["status"] == "interrupted"


async def test_child_ends_when_its_last_step_is_removed(cell: Cell, principal: Principal) -> None:
    parent = await cell.claim(await cell.session(principal, "go"), principal)
    (request,) = requests(1)
    two_steps = replace(request, steps=request.steps * 2)
    group, _ = await store(cell).spawn(parent, "sevt_1", [two_steps, request])
    first, second = group.session_ids
    claim = await cell.claim(first, principal)
    async with cell.units.unit(principal, None) as unit:
        await unit.change_playback(principal, first, "pause")
    await cell.turns.finish(claim, COMPLETED)
    for child_id, outcome in ((first, EndOutcome.COMPLETED), (second, EndOutcome.CANCELLED)):
        pending = await cell.reads.steps(principal, child_id, states=(StepState.PENDING,), limit=10, after=None)
        async with cell.units.unit(principal, None) as unit:
            _, accepted = await unit.remove_step(principal, child_id, pending[0].id)
        assert accepted.wake or (await cell.head(child_id))["wake"]
        await cell.expect_nothing_to_claim(child_id, principal)
        end = (await cell.reads.session(principal, child_id)).end
        assert end is not None
        assert end.outcome is outcome


async def test_waiting_member_cannot_be_paused_and_counts_when_a_client_plays_it(
    cell: Cell, principal: Principal
) -> None:
    _, _, group = await start(cell, principal, 3, max_running=1)
    first, second, third = group.session_ids
    with pytest.raises(Conflict, match="cannot be paused"):
        async with cell.units.unit(principal, None) as unit:
            await unit.change_playback(principal, second, "pause")
    async with cell.units.unit(principal, None) as unit:
        _, accepted = await unit.change_playback(principal, second, "play")
    assert accepted.wake
    cancellation = GroupCancellation(cell.database, cell.objects)
    assert not await cancellation.fill_groups()
    assert await run(cell, principal, first) == [third]
    assert await run(cell, principal, second) == []
    assert not await cancellation.fill_groups()


async def test_message_and_wait_of_a_lost_attempt_are_refused(cell: Cell, principal: Principal) -> None:
    claim, call, group = await start(cell, principal, 1)
    await run(cell, principal, group.session_ids[0])
    await cell.claim(claim.session_id, principal)
    with pytest.raises(Fenced):
        await store(cell).send_message(claim, group.session_ids[0], "hurry", "call_1")
    with pytest.raises(Fenced):
        await store(cell).wait(claim, call.id, group.id)


async def test_fork_of_a_fork_of_a_child_needs_the_files_of_the_parent_once(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 1)
    (child,) = group.session_ids
    await run(cell, principal, child)
    fork = await cell.fork(principal, child)
    await cell.send(principal, fork.id, "go")
    await run(cell, principal, fork.id)
    second = await cell.fork(principal, fork.id)
    owners = {row["owner"]: row["files_only"] for row in await cell.rows("stretches", second.id)}
    assert owners == {claim.session_id: True, child: False, fork.id: False}


async def test_children_count_for_the_owner_of_their_parent(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 1)
    child = await cell.claim(group.session_ids[0], principal)
    other = replace(principal, id=ids.new_id(ids.API_KEY))
    async with cell.database.connection() as connection:
        await connection.execute("update turns set principal = $2 where id = $1", child.turn_id, other.id)
    await LimitStore(cell.database).set_operator_limit(principal.organisation, LimitName.SESSIONS, EACH_MEMBER, 3)
    await cell.session(other)
    await cell.session(other)
    grandchildren, _ = await store(cell).spawn(child, ids.new_id(ids.EVENT), requests(1))
    assert (await cell.reads.session(principal, grandchildren.session_ids[0])).owner_id == principal.id
    with pytest.raises(OrganisationLimitExceeded):
        await store(cell).spawn(child, ids.new_id(ids.EVENT), requests(1))
    assert claim.session_id != child.session_id


@pytest.mark.requirement("S9")
async def test_children_have_the_context_overrides_and_priority_of_the_turn(cell: Cell, principal: Principal) -> None:
    parent_id = await cell.session(principal, context={"team": "one"})
    sent = Input(
        type=events.USER_MESSAGE,
        body={"content": [events.text_block("go")]},
        overrides={"limits": {"max_iterations": 3}, "tools": []},
        context={"ticket": "T-1"},
    )
    await cell.send(principal, parent_id, sent)
    async with cell.database.connection() as connection:
        await connection.execute("update session_heads set priority = 5 where session_id = $1", parent_id)
    claim = await cell.claim(parent_id, principal)
    group, to_wake = await store(cell).spawn(claim, ids.new_id(ids.EVENT), requests(1))
    assert to_wake == [SessionToWake(principal.organisation, group.session_ids[0], 5)]
    child = await cell.claim(group.session_ids[0], principal)
    assert (await cell.head(child.session_id))["priority"] == 5
    assert child.config.max_iterations == 3
    assert child.context == {"team": "one", "ticket": "T-1"}


async def test_child_with_another_agent_obeys_the_rules_of_its_parents_agent(cell: Cell, principal: Principal) -> None:
    async with cell.units.unit(principal, None) as unit:
        agent = await unit.create_agent(
            principal, name="reviewer", definition={"model": {"id": "claude-opus-5"}}, metadata={}
        )
    parent_id = await cell.session(principal, "go")
    async with cell.database.connection() as connection:
        await connection.execute(
            "update sessions set agent = agent || $2, permissions = $3 where id = $1",
            parent_id,
            {
                "permissions": {"deny": ["Bash(rm *)"], "ask": ["WebFetch"], "allow": ["Bash(ls *)"]},
                "tools": [
                    {
                        "type": "agent_toolset_20260401",
                        "configs": [{"name": "edit", "permission_policy": {"type": "always_ask"}}],
                    }
                ],
            },
            {"deny": ["Read(.env)"], "allow": ["Read"]},
        )
    claim = await cell.claim(parent_id, principal)
    request = replace(requests(1)[0], agent_id=agent.id)
    group, _ = await store(cell).spawn(claim, ids.new_id(ids.EVENT), [request, *requests(1)])
    named, same = [(await cell.reads.session(principal, one)).permissions for one in group.session_ids]
    assert named == {"deny": ["Read(.env)", "Bash(rm *)"], "ask": ["WebFetch", "Edit"], "allow": ["Read"]}
    assert same == {"deny": ["Read(.env)"], "allow": ["Read"]}


async def test_owner_and_visibility_of_a_session_reach_its_descendants(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 2, max_running=1)
    child = await cell.claim(group.session_ids[0], principal)
    grandchildren, _ = await store(cell).spawn(child, ids.new_id(ids.EVENT), requests(1))
    descendants = [*group.session_ids, *grandchildren.session_ids]

    async def hide() -> None:
        async with cell.units.unit(principal, None) as unit:
            await unit.update_session(
                principal, claim.session_id, lambda session: replace(session, audience=Audience(Visibility.PRIVATE))
            )

    await asyncio.gather(hide(), cell.turns.finish(child, COMPLETED))
    for session_id in descendants:
        assert (await cell.reads.session(principal, session_id)).audience.visibility is Visibility.PRIVATE


async def test_cancellation_repeats_a_commit_that_the_database_rolled_back(cell: Cell, principal: Principal) -> None:
    claim, _, group = await start(cell, principal, 2)
    cell.database.lose_next_commit = True
    stopped = await GroupCancellation(cell.database, cell.objects).cancel(group.id)
    assert [session[1] for session in stopped.to_wake] == [claim.session_id]
    assert {(await cell.head(session_id))["status"] for session_id in group.session_ids} == {"terminated"}


@pytest.mark.parametrize("parent_first", [False, True])
async def test_group_is_deleted_with_its_last_session(cell: Cell, principal: Principal, *, parent_first: bool) -> None:
    claim, _, group = await start(cell, principal, 2)
    for session_id in group.session_ids:
        await run(cell, principal, session_id)
    await run(cell, principal, claim.session_id)
    order = [claim.session_id, *group.session_ids] if parent_first else [*group.session_ids, claim.session_id]

    async def count_groups() -> int:
        async with cell.database.connection() as connection:
            return int(await connection.fetchval("select count(*) from session_groups where id = $1", group.id))

    for session_id in order:
        assert await count_groups() == 1
        await cell.delete(principal, session_id)
    assert await count_groups() == 0


async def test_host_removes_the_files_of_an_ended_parent_although_children_need_its_snapshots(
    cell: Cell, principal: Principal
) -> None:
    claim, _, group = await start(cell, principal, 1)
    registry, sessions = SessionRegistry(cell.database), [claim.session_id, *group.session_ids]
    assert await registry.expired(sessions, timedelta(days=1)) == set()
    async with cell.units.unit(principal, None) as unit:
        await unit.end_session(principal, claim.session_id, SessionEnd(outcome=EndOutcome.COMPLETED))
    assert await registry.expired(sessions, timedelta(days=1)) == {claim.session_id}
    expired = {row["session_id"] async for row in SessionExpiry(cell.database, timedelta(0)).list_expired()}
    assert claim.session_id not in expired


async def test_expired_member_is_counted_before_it_is_deleted(cell: Cell, principal: Principal) -> None:
    parent = await cell.claim(await cell.session(principal, "go"), principal)
    call = groups.waiting_call("run_sessions", {}, call_id=parent.turn_id)
    await cell.turns.append(parent, [call])
    group, _ = await store(cell).spawn(parent, call.id, requests(1))
    (child_id,) = group.session_ids
    assert await store(cell).wait(parent, call.id, group.id) is None
    await cell.turns.finish(parent, awaiting(call))
    async with cell.database.connection() as connection:  # such a member exists only after a fault
        await connection.execute("update steps set state = 'cancelled' where session_id = $1", child_id)
        await connection.execute("update session_heads set wake = false where session_id = $1", child_id)
    notified: list[StoppedSessions] = []

    async def notify(stopped: StoppedSessions) -> None:
        notified.append(stopped)

    await SessionExpiry(cell.database, timedelta(0), notify)._handle_if_due(principal.organisation, child_id)
    assert [list(stopped.to_wake) for stopped in notified] == [
        [SessionToWake(principal.organisation, parent.session_id)]
    ]
    assert (await cell.claim(parent.session_id, principal)).turn_id == parent.turn_id
