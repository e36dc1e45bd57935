"""A turn from its wake to its commit, whatever the harness does, and the messages that reach it meanwhile."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

import pytest
from tests.integration.engine.cell import DONE, PATIENCE, Engine
from tests.integration.store.cell import awaiting, custom_tool_call, interrupt, message, tool_result_for

from footplate.domain.errors import ModelRefused, Overloaded, RateLimited
from footplate.domain.ports.harness import Entry, TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.steps import StepDefinition, StepKind
from footplate.domain.sessions.turns import SessionStatus, TurnOutcome, TurnStatus, WhenBusy
from footplate.engine.temporal.activities import SweepActivities
from footplate.stack.orphan_processes import wait_until
from footplate.store.leases.branch_and_directory_leases import WriteLeases
from footplate.store.leases.worker_lease_store import WorkerLeases

pytestmark = pytest.mark.timing

_IN_QUEUE = "select count(*) from write_queue where organisation = $1"


def _is_filled(items: Sequence[object]) -> Callable[[], Awaitable[bool]]:
    async def filled() -> bool:
        return bool(items)

    return filled


async def _append_message(turn: TurnContext) -> TurnOutcome:
    await turn.log.append([events.message("hello")], entries=[Entry("k", {"attempt": turn.attempt})])
    return DONE


@pytest.mark.requirement("K2")
@pytest.mark.requirement("S6")
async def test_a_message_becomes_a_turn(engine: Engine) -> None:
    session_id = await engine.session(_append_message)
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, turn.attempt, turn.result["text"]) == (TurnStatus.COMPLETED, 1, "done")
    assert await engine.types(session_id) == [
        events.USER_MESSAGE,
        events.USER_MESSAGE,
        events.STATUS_RUNNING,
        events.AGENT_MESSAGE,
        events.STATUS_IDLE,
    ]


@pytest.mark.requirement("O1")
async def test_messages_to_a_busy_session_cause_one_signal_and_all_become_turns(engine: Engine) -> None:
    release = asyncio.Event()
    taken: list[object] = []

    async def wait(turn: TurnContext) -> TurnOutcome:
        taken.append(turn.content[0]["text"])
        await release.wait()
        return DONE

    session_id = await engine.session(wait)
    await engine.send(session_id, "0")
    assert await wait_until(_is_filled(taken), PATIENCE)
    woken = [await engine.send(session_id, f"{number}") for number in range(1, 8)]
    release.set()
    await engine.wait_for_ended_turns(session_id, 8)
    assert (sum(woken), taken) == (1, [f"{number}" for number in range(8)])


async def test_an_idle_workflow_completes_and_the_next_message_starts_it_again(engine: Engine) -> None:
    session_id = await engine.session(_append_message)
    for count in (1, 2):
        await engine.send(session_id, "hi")
        await engine.wait_for_ended_turns(session_id, count)
        assert await engine.is_open(session_id)
        await engine.wait_for_workflow_end(session_id)


async def test_a_conversation_grows_from_turn_to_turn(engine: Engine) -> None:
    seen: list[Sequence[Entry]] = []

    async def remember(turn: TurnContext) -> TurnOutcome:
        seen.append(turn.history)
        return await _append_message(turn)

    session_id = await engine.session(remember)
    for count in (1, 2, 3):
        await engine.send(session_id, "hi")
        await engine.wait_for_ended_turns(session_id, count)
    assert [len(history) for history in seen] == [0, 1, 2]


@pytest.mark.requirement("S5")
async def test_a_temporary_failure_is_retried(engine: Engine) -> None:
    statuses: list[SessionStatus] = []

    async def succeed_at_third_attempt(turn: TurnContext) -> TurnOutcome:
        if turn.attempt < 3:
            raise RateLimited("slow down", retry_after=0.4)
        return DONE

    session_id = await engine.session(succeed_at_third_attempt)
    await engine.send(session_id, "hi")

    async def parked() -> bool:
        statuses.append((await engine.cell.reads.session(engine.principal, session_id)).status)
        return statuses[-1] is SessionStatus.RESCHEDULING

    assert await wait_until(parked, PATIENCE), set(statuses)
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, turn.attempt) == (TurnStatus.COMPLETED, 3)
    assert await engine.errors(session_id) == [("model_rate_limited_error", "retrying")] * 2
    assert (await engine.types(session_id)).count(events.STATUS_RESCHEDULED) == 2
    assert (await engine.types(session_id)).count(events.STATUS_RUNNING) == 3


async def test_a_persistent_failure_ends_the_turn_but_not_the_session(engine: Engine) -> None:
    async def never(turn: TurnContext) -> TurnOutcome:
        raise Overloaded("try later")

    session_id = await engine.session(never)
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, turn.attempt, turn.result["error"]) == (TurnStatus.FAILED, 4, "try later")
    overloaded = "model_overloaded_error"
    assert await engine.errors(session_id) == [*[(overloaded, "retrying")] * 3, (overloaded, "terminal")]

    engine.harness.work[session_id] = _append_message
    await engine.send(session_id, "again")
    assert (await engine.wait_for_ended_turns(session_id, 2))[1].status is TurnStatus.COMPLETED


@pytest.mark.requirement("S5")
async def test_a_permanent_failure_is_not_retried(engine: Engine) -> None:
    async def refused(turn: TurnContext) -> TurnOutcome:
        raise ModelRefused("no such model")

    session_id = await engine.session(refused)
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, turn.attempt) == (TurnStatus.FAILED, 1)
    assert await engine.errors(session_id) == [("model_request_failed_error", "terminal")]


async def test_a_crash_is_retried_and_its_details_are_not_published(engine: Engine) -> None:
    async def crash(turn: TurnContext) -> TurnOutcome:
        if turn.attempt == 1:
            raise ZeroDivisionError("a secret")
        return DONE

    session_id = await engine.session(crash)
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, turn.attempt) == (TurnStatus.COMPLETED, 2)
    positions = await engine.cell.positions(session_id, engine.principal)
    assert not [item for item in positions if "a secret" in str(item.event.body)]


@pytest.mark.parametrize("nudge", [True, False])
async def test_an_interrupt_reaches_the_turn_even_if_the_nudge_is_lost(engine: Engine, *, nudge: bool) -> None:
    started = asyncio.Event()

    async def until_interrupted(turn: TurnContext) -> TurnOutcome:
        started.set()
        await turn.interrupt.wait()
        return TurnOutcome(status=TurnStatus.INTERRUPTED)

    session_id = await engine.session(until_interrupted)
    await engine.send(session_id, "hi")
    await started.wait()
    await engine.send(session_id, interrupt(), nudge=nudge)
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert turn.status is TurnStatus.INTERRUPTED
    listed = await engine.cell.positions(session_id, engine.principal)
    taken = [item.processed_at is not None for item in listed if item.event.type == events.USER_INTERRUPT]
    assert taken == [False, True]


async def test_an_interrupt_ends_a_turn_that_waits_for_its_directory(engine: Engine) -> None:
    attempts: list[int] = []

    async def work(turn: TurnContext) -> TurnOutcome:
        attempts.append(turn.attempt)
        return DONE

    async def queued() -> bool:
        async with engine.cell.database.connection() as connection:
            return bool(await connection.fetchval(_IN_QUEUE, engine.principal.organisation))

    session_id = await engine.session(work, context={"directory": "/shared"})
    busy = f"{socket.gethostname()}:/shared"
    async with WriteLeases(engine.cell.database).hold(engine.principal.organisation, busy, owner="another"):
        await engine.send(session_id, "hi")
        assert await wait_until(queued, PATIENCE)
        await engine.send(session_id, interrupt())
        (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, attempts, await queued()) == (TurnStatus.INTERRUPTED, [], False)
    await engine.send(session_id, "again")
    assert (await engine.wait_for_ended_turns(session_id, 2))[1].status is TurnStatus.COMPLETED


@pytest.mark.parametrize("nudge", [True, False])
async def test_steering_joins_the_turn_even_if_the_nudge_is_lost(engine: Engine, *, nudge: bool) -> None:
    started = asyncio.Event()

    async def until_steered(turn: TurnContext) -> TurnOutcome:
        taken: list[object] = []

        async def steered() -> bool:
            taken.extend(item.content[0]["text"] for item in await turn.claim_steering())
            return bool(taken)

        started.set()
        assert await wait_until(steered, PATIENCE)
        return TurnOutcome(status=TurnStatus.COMPLETED, text=str(taken[0]))

    session_id = await engine.session(until_steered)
    await engine.send(session_id, "hi")
    await started.wait()
    await engine.send(session_id, message("left a bit", WhenBusy.STEER), nudge=nudge)
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert turn.result["text"] == "left a bit"


@pytest.mark.requirement("K9")
async def test_a_parked_turn_resumes_with_its_tool_result(engine: Engine) -> None:
    asked = custom_tool_call()

    async def park(turn: TurnContext) -> TurnOutcome:
        if turn.attempt == 1:
            await turn.log.append([asked])
            return awaiting(asked)
        results = [event for event in turn.turn_events if event.type == events.USER_CUSTOM_TOOL_RESULT]
        return DONE if results else awaiting(asked)

    session_id = await engine.session(park)
    await engine.send(session_id, "hi")

    async def parked() -> bool:
        turns = await engine.turns(session_id)
        return bool(turns) and turns[0].status is TurnStatus.AWAITING

    assert await wait_until(parked, PATIENCE)
    await engine.wait_for_workflow_end(session_id)  # a parked turn needs no workflow
    await engine.send(session_id, tool_result_for(asked.id))
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, turn.attempt) == (TurnStatus.COMPLETED, 2)


@pytest.mark.requirement("O4")
async def test_a_turn_claimed_by_another_worker_writes_nothing_more(engine: Engine) -> None:
    """As after a pause, the epoch has advanced. The harness is cancelled, and the next worker resumes the turn."""
    attempts: list[int] = []
    cancelled = asyncio.Event()

    async def work(turn: TurnContext) -> TurnOutcome:
        attempts.append(turn.attempt)
        if turn.attempt > 1:
            return DONE
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return DONE

    session_id = await engine.session(work)
    await engine.send(session_id, "hi")
    assert await wait_until(_is_filled(attempts), PATIENCE)
    await engine.cell.claim(session_id, engine.principal, "wrkr_thief")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert cancelled.is_set()
    assert (attempts, turn.attempt, turn.status) == ([1, 3], 3, TurnStatus.COMPLETED)
    assert (await engine.types(session_id)).count(events.STATUS_IDLE) == 1


async def test_the_sweep_wakes_a_session_whose_wake_was_lost(engine: Engine) -> None:
    session_id = await engine.session(_append_message)
    await engine.cell.send(engine.principal, session_id, "hi")
    async with engine.cell.database.connection() as connection:
        await connection.execute(
            "update session_heads set wake_at = now() - interval '1 minute' where session_id = $1", session_id
        )
    await SweepActivities(WorkerLeases(engine.cell.database), engine.waker).sweep()
    assert (await engine.wait_for_ended_turns(session_id))[0].status is TurnStatus.COMPLETED


async def test_messages_that_a_fork_carries_are_not_part_of_a_command(engine: Engine) -> None:
    """They wait for the next turn of the model."""
    seen: list[Sequence[object]] = []

    async def note_texts(turn: TurnContext) -> TurnOutcome:
        seen.append([block["text"] for block in turn.content])
        return DONE

    principal = engine.principal
    parent_id = await engine.cell.session(principal, "touch unwanted")
    await engine.cell.claim(parent_id, principal)  # its turn has not reached the model
    fork = await engine.cell.fork(principal, parent_id)
    engine.harness.work[fork.id] = note_texts
    step = StepDefinition(kind=StepKind.SHELL, command="true")
    async with engine.cell.units.unit(principal, None) as unit:
        await unit.add_steps(principal, fork.id, [(step, {})], before=None)
    await engine.waker.wake(principal.organisation, fork.id)
    await engine.wait_for_ended_turns(fork.id)
    await engine.send(fork.id, "hi")
    await engine.wait_for_ended_turns(fork.id, 2)
    assert seen == [["true"], ["touch unwanted", "hi"]]
