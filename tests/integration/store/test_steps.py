"""The queue of a session on the real store: order, playback, conditions, failure policies, and concurrent clients."""

import asyncio
import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from bench.support.queue.model import QueueModel
from bench.support.queue.random_changes import RandomChanges
from bench.support.queue.store_access import StoreQueue

from footplate.api.wire.session.steps import serialize_step
from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject, as_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.policy.permissions import Decision, PermissionOutcome
from footplate.domain.ports.api import PlaybackAction
from footplate.domain.ports.engine import NothingToClaim
from footplate.domain.sessions import events, steps
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.steps import OnFailure, PauseReason, Step, StepDefinition, StepKind, StepState
from footplate.domain.sessions.turns import ActivityState, TurnOutcome, TurnStatus, WhenBusy
from footplate.store.database import SQL

from .cell import COMPLETED, Cell, awaiting, custom_tool_call, interrupt, message, tool_result_for, types

SHELL = StepDefinition(kind=StepKind.SHELL, command="true")
FAILED_COMMAND = replace(COMPLETED, step_failed=True, error_message="The command exited with code 1.")


async def add(cell: Cell, principal: Principal, session_id: str, *names: str, **fields: Any) -> list[str]:
    definitions = [replace(SHELL, name=name, **fields) for name in names]
    async with cell.units.unit(principal, None) as unit:
        added, _ = await unit.add_steps(principal, session_id, [(one, {}) for one in definitions], before=None)
    return [step.id for step in added]


async def change(cell: Cell, principal: Principal, session_id: str, action: PlaybackAction) -> steps.Playback:
    async with cell.units.unit(principal, None) as unit:
        playback, _ = await unit.change_playback(principal, session_id, action)
    return playback


async def run_one(cell: Cell, principal: Principal, session_id: str, outcome: TurnOutcome = COMPLETED) -> str | None:
    """Runs the next step, and returns its name or the text of the message."""
    claim = await cell.claims.claim(principal.organisation, session_id, "wrkr_1")
    if isinstance(claim, NothingToClaim):
        return None
    await cell.turns.finish(claim, outcome)
    return claim.step.definition.name if claim.step else str(claim.content[0]["text"])


async def listed(cell: Cell, principal: Principal, session_id: str) -> list[Step]:
    return [*await cell.reads.steps(principal, session_id, states=(), limit=1000, after=None)]


@pytest.mark.requirement("F2", "O1")
async def test_steps_and_messages_run_in_the_order_of_the_queue(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "first")
    step_ids = await add(cell, principal, session_id, "build", "test")
    await cell.send(principal, session_id, "last")
    order = [await run_one(cell, principal, session_id) for _ in range(4)]
    assert order == ["first", "build", "test", "last"]
    found = await listed(cell, principal, session_id)
    assert [step.state for step in found] == [StepState.COMPLETED] * 4
    assert [step.id for step in found][1:3] == step_ids
    assert [step.is_message for step in found] == [True, False, False, True]
    assert all(step.turn_id and step.started_at and step.ended_at for step in found)


async def test_pending_steps_can_be_moved_edited_and_removed(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await change(cell, principal, session_id, "pause")
    a, b, c, d = await add(cell, principal, session_id, "a", "b", "c", "d")
    async with cell.units.unit(principal, None) as unit:
        await unit.move_step(principal, session_id, d, before=b)
        await unit.move_step(principal, session_id, a, before=None)
        await unit.remove_step(principal, session_id, c)
        await unit.edit_step(principal, session_id, b, lambda step: replace(step.definition, name="edited"))
        await unit.add_steps(principal, session_id, [(replace(SHELL, name="e"), {})], before=a)
    await change(cell, principal, session_id, "play")
    assert [await run_one(cell, principal, session_id) for _ in range(5)] == ["d", "edited", "e", "a", None]
    for broken in (b, c):
        with pytest.raises(Conflict):
            async with cell.units.unit(principal, None) as unit:
                await unit.remove_step(principal, session_id, broken)
    with pytest.raises(NotFound):
        await cell.reads.step(principal, session_id, "step_unknown")


@pytest.mark.requirement("O2")
async def test_a_paused_session_starts_no_step_and_next_starts_one(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await change(cell, principal, session_id, "pause")
    await add(cell, principal, session_id, "a", "b", "c")
    accepted = await cell.send(principal, session_id, "message")
    assert not accepted.wake
    assert await run_one(cell, principal, session_id) is None
    assert (await cell.reads.session(principal, session_id)).activity.state is ActivityState.PAUSED
    await change(cell, principal, session_id, "next")
    assert [await run_one(cell, principal, session_id) for _ in range(2)] == ["a", None]
    await change(cell, principal, session_id, "next")
    await change(cell, principal, session_id, "next")
    assert [await run_one(cell, principal, session_id) for _ in range(3)] == ["b", "c", None]
    await change(cell, principal, session_id, "play")
    with pytest.raises(Conflict):
        await change(cell, principal, session_id, "next")
    assert await run_one(cell, principal, session_id) == "message"


async def retry(cell: Cell, principal: Principal, session_id: str, step_id: str, *, play: bool = False) -> str:
    async with cell.units.unit(principal, None) as unit:
        step, accepted = await unit.retry_step(principal, session_id, step_id, play=play, check=lambda _: None)
    assert accepted.wake is play
    return step.id


@pytest.mark.requirement("O2", "O9")
async def test_a_failed_step_is_repeated_once_and_first(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    a, b = await add(cell, principal, session_id, "a", "b")
    assert await run_one(cell, principal, session_id, FAILED_COMMAND) == "a"
    assert (await cell.reads.playback(principal, session_id)).reason is PauseReason.STEP_FAILED
    found = await asyncio.gather(
        *(retry(cell, principal, session_id, a, play=True) for _ in range(5)), return_exceptions=True
    )
    (copy,) = [one for one in found if isinstance(one, str)]
    refused = [str(one) for one in found if isinstance(one, Conflict)]
    assert refused == [f"Step {a!r} is already repeated by step {copy!r}."] * 4
    assert [step.id for step in await listed(cell, principal, session_id)] == [a, copy, b]
    claim = await cell.claim(session_id, principal)
    assert claim.step is not None
    assert (claim.step.id, claim.step.attempt, claim.step.definition.retry_of) == (copy, 1, a)
    with pytest.raises(Conflict, match="it is running"):
        await retry(cell, principal, session_id, copy)
    await cell.turns.finish(claim, replace(FAILED_COMMAND, text="again"))
    last = await retry(cell, principal, session_id, copy)
    await change(cell, principal, session_id, "next")
    assert await run_one(cell, principal, session_id, replace(COMPLETED, text="well")) == "a"
    with pytest.raises(Conflict, match="it is completed"):
        await retry(cell, principal, session_id, last)
    with pytest.raises(Conflict, match="it is pending"):
        await retry(cell, principal, session_id, b)
    states = {step.id: step.state for step in await listed(cell, principal, session_id)}
    assert states == {a: "failed", copy: "failed", last: "completed", b: "pending"}
    condition = replace(SHELL, name="c", condition='steps.a.text == "well"')
    async with cell.units.unit(principal, None) as unit:
        await unit.add_steps(principal, session_id, [(condition, {})], before=b)
    await change(cell, principal, session_id, "play")
    assert [await run_one(cell, principal, session_id) for _ in range(3)] == ["c", "b", None]
    model = QueueModel()
    for position in await cell.positions(session_id, principal):
        model.apply(position)
    assert model.states[copy] == "failed"


async def test_a_repeated_step_runs_in_the_name_of_who_repeats_it(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await change(cell, principal, session_id, "pause")
    (step_id,) = await add(cell, principal, session_id, "a")
    async with cell.units.unit(principal, None) as unit:
        await unit.remove_step(principal, session_id, step_id)
    other = replace(principal, id=ids.new_id(ids.MEMBER), name="Ben")
    await retry(cell, other, session_id, step_id, play=True)
    await cell.claim(session_id, principal)
    assert [turn["principal"] for turn in await cell.rows("turns", session_id)] == [other.id]
    message_id = steps.step_id_of((await cell.send(principal, session_id, "hello")).positions[0].event.id)
    with pytest.raises(InvalidRequest, match="cannot be repeated"):
        await retry(cell, principal, session_id, message_id)


@pytest.mark.requirement("O2")
async def test_a_pause_lets_the_current_step_finish(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "a", "b")
    claim = await cell.claim(session_id, principal)
    await change(cell, principal, session_id, "pause")
    assert not (await cell.turns.finish(claim, COMPLETED)).has_more
    assert await run_one(cell, principal, session_id) is None
    assert (await change(cell, principal, session_id, "play")).playing
    assert (await cell.head(session_id))["wake"]
    assert await run_one(cell, principal, session_id) == "b"


@pytest.mark.requirement("O9", "F7")
async def test_a_failed_step_stops_continues_or_is_repeated(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "a", on_failure=OnFailure.CONTINUE)
    await add(cell, principal, session_id, "b", on_failure=OnFailure.RETRY)
    await add(cell, principal, session_id, "c", "d")
    assert await run_one(cell, principal, session_id, FAILED_COMMAND) == "a"
    for attempt, wait in ((1, 1.0), (2, 2.0)):
        claim = await cell.claim(session_id, principal)
        assert claim.step is not None
        assert (claim.step.definition.name, claim.step.attempt) == ("b", attempt)
        finished = await cell.turns.finish(claim, FAILED_COMMAND)
        assert (finished.retry_after, finished.has_more) == (wait, True)
        waiting = await cell.expect_nothing_to_claim(session_id, principal)
        assert waiting.retry_after is not None
        assert 0 < waiting.retry_after <= wait
        head = await cell.head(session_id)
        assert head["wake"]  # the sweep finds the session if Temporal loses its state
        async with cell.database.connection() as connection:
            await connection.execute("update steps set not_before = now() where session_id = $1", session_id)
    assert await run_one(cell, principal, session_id, FAILED_COMMAND) == "b"  # the third and last attempt
    assert (await cell.reads.playback(principal, session_id)).reason is PauseReason.STEP_FAILED
    assert await run_one(cell, principal, session_id) is None
    await change(cell, principal, session_id, "play")
    assert await run_one(cell, principal, session_id, FAILED_COMMAND) == "c"
    assert [step.state.value for step in await listed(cell, principal, session_id)] == ["failed"] * 3 + ["pending"]


@pytest.mark.requirement("F7")
async def test_a_denied_command_is_not_repeated(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "a", on_failure=OnFailure.RETRY)
    claim = await cell.claim(session_id, principal)
    finished = await cell.turns.finish(claim, replace(FAILED_COMMAND, may_retry=False))
    assert (finished.retry_after, finished.has_more) == (None, False)


async def test_an_interrupted_step_is_cancelled_and_the_next_ones_wait(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "a", "b")
    await run_one(cell, principal, session_id, replace(COMPLETED, status=TurnStatus.INTERRUPTED))
    assert [step.state.value for step in await listed(cell, principal, session_id)] == ["cancelled", "pending"]
    assert not (await cell.reads.playback(principal, session_id)).playing


async def test_a_condition_skips_a_step_or_fails_it(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "build")
    await add(cell, principal, session_id, "fix", condition='steps.build.status == "failed"')
    await add(cell, principal, session_id, "deploy", condition="steps.build.exit_code == 0")
    await add(cell, principal, session_id, "broken", condition="steps.nothing.exit_code == 0")
    command: JsonObject = {"status": "completed", "exit_code": 0, "stdout": {"text": "ok"}}
    await run_one(cell, principal, session_id, replace(COMPLETED, data={"command": command}))
    assert await run_one(cell, principal, session_id) == "deploy"
    assert await run_one(cell, principal, session_id) is None
    found = [step.state.value for step in await listed(cell, principal, session_id)]
    assert found == ["completed", "skipped", "completed", "failed"]
    assert (await cell.reads.playback(principal, session_id)).reason is PauseReason.STEP_FAILED


async def test_a_step_does_not_end_a_turn_that_waits_and_a_message_does(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    await add(cell, principal, session_id, "a")
    assert isinstance(await cell.claims.claim(principal.organisation, session_id, "wrkr_1"), NothingToClaim)
    await cell.send(principal, session_id, tool_result_for(call.id))
    resumed = await cell.claim(session_id, principal)
    assert (resumed.turn_id, resumed.attempt) == (claim.turn_id, 2)
    await cell.turns.finish(resumed, COMPLETED)
    assert await run_one(cell, principal, session_id) == "a"


async def test_steering_overtakes_steps_but_loses_none(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    await add(cell, principal, session_id, "a", "b")
    await cell.send(principal, session_id, message("faster", WhenBusy.STEER))
    steering, _ = await cell.turns.claim_steering(claim)
    assert [one.content[0]["text"] for one in steering] == ["faster"]
    assert (await cell.turns.finish(claim, COMPLETED)).has_more
    assert [await run_one(cell, principal, session_id) for _ in range(3)] == ["a", "b", None]


@pytest.mark.requirement("R3")
async def test_the_result_of_an_external_step_is_accepted_once(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    async with cell.units.unit(principal, None) as unit:
        (step,), _ = await unit.add_steps(
            principal, session_id, [(StepDefinition(kind=StepKind.EXTERNAL, name="review"), {})], before=None
        )

    async def submit(status: str) -> None:
        async with cell.units.unit(principal, None) as unit:
            result: JsonObject = {"status": status, "stdout": {"text": "approved", "bytes": 8}}
            await unit.submit_result(principal, session_id, step.id, result, is_error=False)

    with pytest.raises(Conflict):
        await submit("completed")
    claim = await cell.claim(session_id, principal)
    assert claim.config.harness == "external"
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    assert (await cell.reads.step(principal, session_id, step.id)).waiting_for == "action"
    await submit("completed")
    await submit("completed")
    with pytest.raises(Conflict):
        await submit("failed")
    results = [one for one in await cell.positions(session_id, principal) if one.event.type.endswith("tool_result")]
    assert [one.event.body["content"] for one in results] == [[{"type": "text", "text": "approved"}]]


async def test_a_message_in_the_queue_cannot_be_edited_and_can_be_removed(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one", "two")
    second = (await listed(cell, principal, session_id))[1]
    with pytest.raises(InvalidRequest):
        async with cell.units.unit(principal, None) as unit:
            await unit.edit_step(principal, session_id, second.id, lambda step: step.definition)
    async with cell.units.unit(principal, None) as unit:
        await unit.remove_step(principal, session_id, second.id)
    assert [await run_one(cell, principal, session_id) for _ in range(2)] == ["one", None]


async def test_a_step_appears_in_the_log_when_it_is_added_started_and_ended(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "a")
    await run_one(cell, principal, session_id)
    assert types(await cell.positions(session_id, principal)) == [
        steps.CREATED, steps.STARTED, events.STATUS_RUNNING, steps.ENDED, events.STATUS_IDLE,
    ]  # fmt: skip


async def test_a_skipped_or_removed_step_uses_up_a_next(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await change(cell, principal, session_id, "pause")
    await add(cell, principal, session_id, "skipped", condition="false")
    await change(cell, principal, session_id, "next")
    assert await run_one(cell, principal, session_id) is None
    (removed,) = await add(cell, principal, session_id, "removed")
    await change(cell, principal, session_id, "next")
    async with cell.units.unit(principal, None) as unit:
        await unit.remove_step(principal, session_id, removed)
    await add(cell, principal, session_id, "later")
    assert await run_one(cell, principal, session_id) is None


async def test_a_message_that_ends_a_waiting_step_cancels_it_and_pauses_the_rest(
    cell: Cell, principal: Principal
) -> None:
    session_id = await cell.session(principal)
    review = StepDefinition(kind=StepKind.EXTERNAL, name="review")
    async with cell.units.unit(principal, None) as unit:
        await unit.add_steps(principal, session_id, [(review, {})], before=None)
    claim = await cell.claim(session_id, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    await cell.send(principal, session_id, "stop")
    await add(cell, principal, session_id, "deploy")
    assert await run_one(cell, principal, session_id) == "stop"
    assert await run_one(cell, principal, session_id) is None
    found = [step.state.value for step in await listed(cell, principal, session_id)]
    assert found == ["cancelled", "completed", "pending"]
    assert steps.ENDED in types(await cell.positions(session_id, principal))


async def test_removed_steps_hide_no_earlier_result(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "x")
    await run_one(cell, principal, session_id, replace(COMPLETED, data={"command": {"stdout": {"text": "good"}}}))
    await change(cell, principal, session_id, "pause")
    (removed,) = await add(cell, principal, session_id, "x")
    await add(cell, principal, session_id, "use", command="echo ${steps.x.stdout}")
    async with cell.units.unit(principal, None) as unit:
        await unit.remove_step(principal, session_id, removed)
    await change(cell, principal, session_id, "play")
    claim = await cell.claim(session_id, principal)
    assert claim.step is not None
    assert steps.result_fields(claim.step.results["x"])["stdout"] == "good"


@pytest.mark.requirement("S8")
async def test_an_edited_step_runs_in_the_name_of_its_editor(cell: Cell, principal: Principal) -> None:
    editor = replace(principal, id=ids.new_id(ids.API_KEY), name="editor")
    session_id = await cell.session(principal)
    await change(cell, principal, session_id, "pause")
    (step_id,) = await add(cell, principal, session_id, "build")
    async with cell.units.unit(editor, None) as unit:
        await unit.edit_step(editor, session_id, step_id, lambda step: replace(step.definition, command="deploy"))
    await change(cell, principal, session_id, "play")
    claim = await cell.claim(session_id, principal)
    assert claim.author is not None
    assert claim.author.id == editor.id
    async with cell.database.connection() as connection:
        authors = await connection.fetch(SQL["turn_authors"], session_id, claim.turn_id)
    assert {row["principal"] for row in authors} == {principal.id, editor.id}


async def test_a_queued_step_of_a_paused_session_counts_for_the_limit(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await change(cell, principal, session_id, "pause")
    await add(cell, principal, session_id, "a", "b")
    await cell.send(principal, session_id, "c")
    async with cell.database.connection() as connection:
        await connection.execute("update active_sessions set since = now() - interval '1 hour'")
        await connection.execute(SQL["forget_active"])
        used = await connection.fetch(SQL["used_queued_steps"], principal.organisation)
    assert [row["used"] for row in used] == [3]


@pytest.mark.requirement("O4")
async def test_concurrent_clients_and_a_worker_follow_the_model(cell: Cell, principal: Principal) -> None:
    for seed in range(6):
        chance = random.Random(seed)
        queue = await StoreQueue.create(cell.database, cell.objects, principal)
        clients = RandomChanges(queue, chance, lambda name, _: f"echo {name}")
        work = [partial(queue.run_step, chance)] * 4
        for _ in range(12):
            await asyncio.gather(*(clients.act(*work) for _ in range(3)))
        model = QueueModel()
        for position in await queue.positions():
            model.apply(position)
        found = await queue.steps()
        assert [step.id for step in found if step.state is StepState.PENDING] == model.pending
        assert {step.id: step.state.value for step in found} == model.states
        assert clients.made > clients.refused / 4


async def test_a_step_that_did_not_run_has_the_reason_in_its_result(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await change(cell, principal, session_id, "pause")
    _, removed = await add(cell, principal, session_id, "skipped", "removed", condition="false")
    async with cell.units.unit(principal, None) as unit:
        await unit.remove_step(principal, session_id, removed)
    await change(cell, principal, session_id, "play")
    assert await run_one(cell, principal, session_id) is None
    found = await listed(cell, principal, session_id)
    results = {step.definition.name: as_object(serialize_step(step)["result"]) for step in found}
    assert (results["skipped"]["status"], results["skipped"]["error_message"]) == (
        "skipped",
        "The condition 'false' is false.",
    )
    assert results["removed"]["error_message"] == "Removed from the queue."


async def park_step(cell: Cell, principal: Principal, session_id: str, definition: StepDefinition) -> Event:
    """Adds a step and runs it until it waits. Returns the call that it waits for."""
    async with cell.units.unit(principal, None) as unit:
        await unit.add_steps(principal, session_id, [(definition, {})], before=None)
    claim = await cell.claim(session_id, principal)
    ask = Decision(PermissionOutcome.ASK, "a rule")
    call = (
        events.tool_use("bash", {"command": "true"}, call_id=claim.turn_id, decision=ask)
        if definition.kind is StepKind.SHELL
        else custom_tool_call()
    )
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    return call


@pytest.mark.requirement("O2")
@pytest.mark.parametrize("kind", [StepKind.SHELL, StepKind.EXTERNAL])
async def test_an_interrupt_cancels_a_step_that_waits(cell: Cell, principal: Principal, kind: StepKind) -> None:
    session_id = await cell.session(principal)
    await park_step(cell, principal, session_id, StepDefinition(kind=kind, command="true"))
    assert (await cell.send(principal, session_id, interrupt())).wake
    resumed = await cell.claim(session_id, principal)
    assert (resumed.attempt, (await cell.turns.claim_interrupts(resumed))[0]) == (2, True)
    await cell.turns.finish(resumed, replace(COMPLETED, status=TurnStatus.INTERRUPTED))
    (step,) = await listed(cell, principal, session_id)
    assert (step.state, (await cell.head(session_id))["pause_reason"]) == (StepState.CANCELLED, PauseReason.STEP_FAILED)
    assert not (await cell.send(principal, session_id, interrupt())).wake


async def test_an_interrupt_that_arrives_while_a_step_parks_is_obeyed(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "build")
    claim = await cell.claim(session_id, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.send(principal, session_id, interrupt())
    assert (await cell.turns.finish(claim, awaiting(call))).has_more
    resumed = await cell.claim(session_id, principal)
    assert (resumed.turn_id, (await cell.turns.claim_interrupts(resumed))[0]) == (claim.turn_id, True)


async def test_an_interrupt_does_not_end_a_message_that_waits(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    assert not (await cell.send(principal, session_id, interrupt())).wake
    await cell.expect_nothing_to_claim(session_id, principal)


async def test_the_call_of_a_superseded_shell_step_has_a_result(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    call = await park_step(cell, principal, session_id, SHELL)
    await cell.send(principal, session_id, "stop")
    assert await run_one(cell, principal, session_id) == "stop"
    found = [one.event for one in await cell.positions(session_id, principal)]
    (result,) = [event for event in found if event.type == events.AGENT_TOOL_RESULT]
    assert (result.body["tool_use_id"], result.body["is_error"]) == (call.id, True)
    assert as_object(result.body["command"])["status"] == "denied"


async def test_an_archived_session_accepts_no_steps_and_shows_its_own(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    (step_id,) = await add(cell, principal, session_id, "a")
    await run_one(cell, principal, session_id)
    async with cell.units.unit(principal, None) as unit:
        await unit.archive_session(principal, session_id)
    with pytest.raises(InvalidRequest, match="archived"):
        await add(cell, principal, session_id, "b")
    with pytest.raises(InvalidRequest, match="archived"):
        await change(cell, principal, session_id, "pause")
    assert [step.id for step in await listed(cell, principal, session_id)] == [step_id]


@pytest.mark.parametrize("removes", [True, False])
async def test_removing_or_moving_a_step_wakes_a_session_that_waits(
    cell: Cell, principal: Principal, *, removes: bool
) -> None:
    session_id = await cell.session(principal)
    first, _ = await add(cell, principal, session_id, "a", "b")
    async with cell.database.connection() as connection:  # as after a claim that found the author of `a` disabled
        await connection.execute(
            "update session_heads set wake = false, waits_for = 'x' where session_id = $1", session_id
        )
    async with cell.units.unit(principal, None) as unit:
        if removes:
            _, accepted = await unit.remove_step(principal, session_id, first)
        else:
            _, accepted = await unit.move_step(principal, session_id, first, before=None)
    assert accepted.wake
    assert (await cell.head(session_id))["wake"]
    assert await run_one(cell, principal, session_id) == "b"


async def test_an_interrupting_message_behind_a_step_does_not_interrupt_it(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    await add(cell, principal, session_id, "a")
    await cell.send(principal, session_id, message("stop", WhenBusy.INTERRUPT))
    assert (await cell.turns.claim_interrupts(claim))[0]
    await cell.turns.finish(claim, replace(COMPLETED, status=TurnStatus.INTERRUPTED))
    step = await cell.claim(session_id, principal)
    assert step.step is not None
    assert not (await cell.turns.claim_interrupts(step))[0]
    await cell.turns.finish(step, COMPLETED)
    assert await run_one(cell, principal, session_id) == "stop"


@pytest.mark.requirement("R3")
async def test_a_long_external_result_is_accepted_once(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await park_step(cell, principal, session_id, StepDefinition(kind=StepKind.EXTERNAL))
    (step,) = await listed(cell, principal, session_id)

    async def submit(text: str) -> None:
        async with cell.units.unit(principal, None) as unit:
            result: JsonObject = {"status": "completed", "stdout": {"text": text, "bytes": len(text)}}
            await unit.submit_result(principal, session_id, step.id, result, is_error=False)

    long = "x" * 200_000
    await submit(long)
    await submit(long)
    with pytest.raises(Conflict):
        await submit(f"{long}y")
    found = [one.event for one in await cell.positions(session_id, principal)]
    assert len([event for event in found if event.type == events.USER_CUSTOM_TOOL_RESULT]) == 1
