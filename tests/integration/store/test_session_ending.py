"""Sessions that end, on the real store: by a client, by their last step, and what remains of them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from footplate.domain.errors import Conflict, InvalidRequest
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import AcceptedInputs
from footplate.domain.ports.child_store import StoppedSessions
from footplate.domain.sessions import events
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.steps import OnFailure, StepDefinition, StepKind, StepState
from footplate.domain.sessions.turns import ActivityState, Session, SessionStatus, TurnStatus
from footplate.store.retention.expiry import IdleSessionEnding, _expired_after
from footplate.store.session_existence import SessionRegistry

from .cell import COMPLETED, Cell, awaiting, custom_tool_call, tool_result_for, types

pytestmark = pytest.mark.requirement("R2", "O8")

SHELL = StepDefinition(kind=StepKind.SHELL, command="true")
FAILED_COMMAND = replace(COMPLETED, step_failed=True, error_message="The command exited with code 1.")
INTERRUPTED = replace(COMPLETED, status=TurnStatus.INTERRUPTED)


async def end(
    cell: Cell, principal: Principal, session_id: str, outcome: EndOutcome = EndOutcome.COMPLETED, reason: str = "Done."
) -> tuple[Session, AcceptedInputs]:
    async with cell.units.unit(principal, None) as unit:
        return await unit.end_session(
            principal, session_id, SessionEnd(outcome=outcome, reason=reason, ended_by=principal.id)
        )


async def add(cell: Cell, principal: Principal, session_id: str, *names: str, **fields: Any) -> None:
    async with cell.units.unit(principal, None) as unit:
        await unit.add_steps(
            principal, session_id, [(replace(SHELL, name=name, **fields), {}) for name in names], before=None
        )


async def outcome_of(cell: Cell, principal: Principal, session_id: str) -> tuple[str, str | None] | None:
    session = await cell.reads.session(principal, session_id)
    return None if session.end is None else (session.end.outcome.value, session.end.reason)


async def test_an_ended_session_cancels_its_queue_and_accepts_nothing_more(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "queued")
    await add(cell, principal, session_id, "build")
    session, accepted = await end(cell, principal, session_id)
    assert session.status is SessionStatus.TERMINATED
    assert session.activity.state is ActivityState.ENDED
    assert session.end is not None
    assert (session.end.ended_by, session.end.ended_at is not None) == (principal.id, True)
    assert types(accepted.positions) == ["step.ended", "step.ended", "session.status_terminated"]
    assert accepted.positions[-1].event.body["outcome"] == "completed"
    steps = await cell.reads.steps(principal, session_id, states=(), limit=10, after=None)
    assert {step.state for step in steps} == {StepState.CANCELLED}
    await cell.expect_nothing_to_claim(session_id, principal)
    head = await cell.head(session_id)
    assert (head["wake"], head["turn_id"], head["holder"]) == (False, None, None)
    for refused in (
        cell.send(principal, session_id, "more"),
        add(cell, principal, session_id, "more"),
    ):
        with pytest.raises(InvalidRequest, match="has ended"):
            await refused
    async with cell.units.unit(principal, None) as unit:
        with pytest.raises(InvalidRequest, match="has ended"):
            await unit.change_playback(principal, session_id, "play")


async def test_a_repeated_end_changes_nothing_and_a_different_one_is_refused(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    first, _ = await end(cell, principal, session_id, EndOutcome.FAILED, "It does not build.")
    again, accepted = await end(cell, principal, session_id, EndOutcome.FAILED)
    assert (again.end, accepted.positions) == (first.end, ())
    with pytest.raises(Conflict, match="already ended as failed"):
        await end(cell, principal, session_id, EndOutcome.COMPLETED)


async def test_a_running_turn_ends_first_and_ends_the_session_in_its_commit(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "work", "never runs")
    claim = await cell.claim(session_id, principal)
    session, accepted = await end(cell, principal, session_id, EndOutcome.CANCELLED)
    assert (session.status, session.end, accepted.nudge) == (SessionStatus.RUNNING, None, True)
    with pytest.raises(Conflict):
        await end(cell, principal, session_id, EndOutcome.COMPLETED)
    assert (await cell.turns.claim_interrupts(claim))[0]
    finished = await cell.turns.finish(claim, INTERRUPTED)
    assert not finished.has_more
    assert types(finished.positions) == ["session.status_idle", "step.ended", "session.status_terminated"]
    assert await outcome_of(cell, principal, session_id) == ("cancelled", "Done.")
    await cell.expect_nothing_to_claim(session_id, principal)


async def test_a_turn_that_completes_before_it_sees_the_request_still_ends_the_session(
    cell: Cell, principal: Principal
) -> None:
    session_id = await cell.session(principal, "work")
    claim = await cell.claim(session_id, principal)
    await end(cell, principal, session_id, EndOutcome.FAILED, "Not needed.")
    finished = await cell.turns.finish(claim, COMPLETED)
    assert types(finished.positions) == ["user.interrupt", "session.status_idle", "session.status_terminated"]
    assert await outcome_of(cell, principal, session_id) == ("failed", "Not needed.")


async def test_the_next_worker_ends_the_session_if_the_first_one_dies(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "work")
    lost = await cell.claim(session_id, principal)
    await end(cell, principal, session_id)
    again = await cell.claim(session_id, principal, worker="wrkr_2")
    assert again.turn_id == lost.turn_id
    assert (await cell.turns.claim_interrupts(again))[0]
    await cell.turns.finish(again, INTERRUPTED)
    assert await outcome_of(cell, principal, session_id) == ("completed", "Done.")


async def test_a_parked_turn_and_its_question_are_closed(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "work")
    claim = await cell.claim(session_id, principal)
    call = replace(custom_tool_call(), body={**custom_tool_call().body, "question": True})
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    await end(cell, principal, session_id)
    assert [row["closed_at"] is not None for row in await cell.rows("approvals", session_id)] == [True]
    assert [row["status"] for row in await cell.rows("turns", session_id)] == ["interrupted"]
    with pytest.raises(InvalidRequest, match="has ended"):
        await cell.send(principal, session_id, tool_result_for(call.id))


async def test_a_parked_turn_with_a_request_to_end_is_not_parked(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "work")
    claim = await cell.claim(session_id, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await end(cell, principal, session_id)
    await cell.turns.finish(claim, awaiting(call))
    assert await outcome_of(cell, principal, session_id) == ("completed", "Done.")
    assert (await cell.head(session_id))["turn_id"] is None


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (COMPLETED, ("completed", None)),
        (FAILED_COMMAND, ("failed", "The command exited with code 1.")),
        (INTERRUPTED, ("cancelled", "The last turn was interrupted.")),
        (replace(COMPLETED, status=TurnStatus.TIMED_OUT, error_message="Too slow."), ("failed", "Too slow.")),
    ],
)
@pytest.mark.parametrize("kind", ["message", "step"])
async def test_a_session_that_ends_when_it_is_done(
    cell: Cell, principal: Principal, outcome: Any, expected: tuple[str, str | None], kind: str
) -> None:
    session_id = await cell.session(principal, *(["work"] if kind == "message" else []), ends_when_done=True)
    if kind == "step":
        await add(cell, principal, session_id, "build")
    finished = await cell.turns.finish(await cell.claim(session_id, principal), outcome)
    assert types(finished.positions)[-1] == "session.status_terminated"
    assert await outcome_of(cell, principal, session_id) == expected


async def test_a_session_is_not_done_while_something_is_pending(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, ends_when_done=True)
    await cell.expect_nothing_to_claim(session_id, principal)  # it has had no work yet
    await add(cell, principal, session_id, "a", on_failure=OnFailure.RETRY)
    await add(cell, principal, session_id, "b")
    await cell.turns.finish(await cell.claim(session_id, principal), FAILED_COMMAND)
    assert await outcome_of(cell, principal, session_id) is None  # waits for its next attempt
    async with cell.database.connection() as connection:
        await connection.execute("update steps set not_before = now() where session_id = $1", session_id)
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    claim = await cell.claim(session_id, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    assert await outcome_of(cell, principal, session_id) is None  # waits for a client
    await cell.send(principal, session_id, tool_result_for(call.id))
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    assert await outcome_of(cell, principal, session_id) == ("completed", None)


async def test_a_session_that_a_client_paused_is_not_done(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, ends_when_done=True)
    await add(cell, principal, session_id, "a", "b")
    claim = await cell.claim(session_id, principal)
    async with cell.units.unit(principal, None) as unit:
        await unit.change_playback(principal, session_id, "pause")
    await cell.turns.finish(claim, COMPLETED)
    assert await outcome_of(cell, principal, session_id) is None


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("1 == 2", ("completed", None)),
        ("steps.missing.exit_code == 0", ("failed", "missing")),
    ],
)
async def test_a_session_whose_last_steps_do_not_run_ends(
    cell: Cell, principal: Principal, condition: str, expected: tuple[str, str | None]
) -> None:
    session_id = await cell.session(principal, ends_when_done=True)
    await add(cell, principal, session_id, "a", "b", condition=condition)
    found = await cell.expect_nothing_to_claim(session_id, principal)
    assert types(found.positions)[-1] == "session.status_terminated"
    outcome, reason = await outcome_of(cell, principal, session_id) or ("", "")
    assert outcome == expected[0]
    assert (expected[1] or "") in (reason or "")


@pytest.mark.parametrize(("outcome", "expected"), [(COMPLETED, "completed"), (FAILED_COMMAND, "failed")])
async def test_a_step_can_end_the_session(cell: Cell, principal: Principal, outcome: Any, expected: str) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "a", ends_session=True)
    await add(cell, principal, session_id, "b")
    await cell.turns.finish(await cell.claim(session_id, principal), outcome)
    found = await outcome_of(cell, principal, session_id)
    assert found is not None
    assert found[0] == expected


async def test_an_interrupted_step_does_not_end_the_session(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "a", ends_session=True)
    await cell.turns.finish(await cell.claim(session_id, principal), INTERRUPTED)
    assert await outcome_of(cell, principal, session_id) is None


@pytest.mark.parametrize("on_failure", [OnFailure.STOP, OnFailure.CONTINUE])
@pytest.mark.parametrize("ends_when_done", [False, True])
async def test_a_step_whose_condition_fails_ends_the_session(
    cell: Cell, principal: Principal, on_failure: OnFailure, *, ends_when_done: bool
) -> None:
    session_id = await cell.session(principal, ends_when_done=ends_when_done)
    condition = "steps.missing.exit_code == 0"
    await add(cell, principal, session_id, "a", ends_session=True, condition=condition, on_failure=on_failure)
    await add(cell, principal, session_id, "b")
    found = await cell.expect_nothing_to_claim(session_id, principal)
    assert types(found.positions)[-1] == events.STATUS_TERMINATED
    outcome, reason = await outcome_of(cell, principal, session_id) or ("", "")
    assert outcome == "failed"
    assert "missing" in (reason or "")


async def test_a_message_that_ends_a_waiting_step_does_not_end_the_session(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, ends_when_done=True)
    await add(cell, principal, session_id, "a", "b")
    claim = await cell.claim(session_id, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    await cell.send(principal, session_id, "Do something else.")
    queued = await cell.reads.steps(principal, session_id, states=(StepState.PENDING,), limit=10, after=None)
    async with cell.units.unit(principal, None) as unit:
        await unit.move_step(principal, session_id, queued[-1].id, before=queued[0].id)
    await cell.turns.finish(await cell.claim(session_id, principal), FAILED_COMMAND)
    assert await outcome_of(cell, principal, session_id) is None  # paused: a person plays it or removes the step
    async with cell.units.unit(principal, None) as unit:
        await unit.change_playback(principal, session_id, "play")
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    assert await outcome_of(cell, principal, session_id) == ("completed", None)


async def test_archiving_ends_the_open_turn_and_cancels_the_queue(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await add(cell, principal, session_id, "a", "b")
    claim = await cell.claim(session_id, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    async with cell.units.unit(principal, None) as unit:
        _, accepted = await unit.archive_session(principal, session_id)
    assert [position.event.body.get("error_message") for position in accepted.positions][-2:] == [
        "The session was archived.",
        "The session was archived before it ran.",
    ]
    await cell.expect_nothing_to_claim(session_id, principal)


async def test_an_ended_session_can_be_forked_delivered_archived_and_deleted(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "work", ends_when_done=True)
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    fork = await cell.fork(principal, session_id)
    assert (fork.end, fork.ends_when_done, fork.status) == (None, False, SessionStatus.IDLE)
    await cell.send(principal, fork.id, "go on")
    await cell.turns.finish(await cell.claim(fork.id, principal), COMPLETED)
    async with cell.units.unit(principal, None) as unit:
        archived, _ = await unit.archive_session(principal, session_id)
    assert archived.archived_at is not None
    await cell.delete(principal, session_id)


async def test_the_commit_of_the_end_is_repeated_after_a_lost_acknowledgement(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "work", ends_when_done=True)
    claim = await cell.claim(session_id, principal)
    cell.database.acknowledgements_to_lose = 1
    await cell.turns.finish(claim, COMPLETED)
    log = types(await cell.positions(session_id, principal))
    assert log.count(events.STATUS_TERMINATED) == 1
    assert await outcome_of(cell, principal, session_id) == ("completed", None)


async def test_a_session_that_is_not_used_ends_by_policy_unless_it_waits(cell: Cell, principal: Principal) -> None:
    unused, queued, parked = [await cell.session(principal, *texts) for texts in ((), ("waits",), ("asks",))]
    claim = await cell.claim(parked, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    notified: list[StoppedSessions] = []

    async def notify(stopped: StoppedSessions) -> None:
        notified.append(stopped)

    disabled, policy = IdleSessionEnding(cell.database, None), IdleSessionEnding(cell.database, timedelta(0), notify)
    await disabled.run()
    assert await outcome_of(cell, principal, unused) is None
    for _ in range(2):  # repeating it changes nothing
        for session_id in (unused, queued, parked):
            await policy._handle_if_due(principal.organisation, session_id)
    assert (await outcome_of(cell, principal, unused) or ("",))[0] == "expired"
    assert types(await cell.positions(unused, principal)) == [events.STATUS_TERMINATED]
    (stopped,) = notified
    assert [(session_id, types(positions)) for _, session_id, positions in stopped.to_publish] == [
        (unused, [events.STATUS_TERMINATED])
    ]
    assert stopped.to_nudge == [unused]
    assert [await outcome_of(cell, principal, session_id) for session_id in (queued, parked)] == [None, None]


@pytest.mark.parametrize(
    ("unused", "text"),
    [
        (timedelta(days=30), "30 days"),
        (timedelta(days=1), "1 day"),
        (timedelta(hours=36), "36 hours"),
        (timedelta(seconds=90), "90 seconds"),
    ],
)
def test_the_reason_of_an_expired_session_has_the_time_in_units(unused: timedelta, text: str) -> None:
    assert _expired_after(unused).reason == f"The session was not used for {text}."


async def test_the_files_of_an_ended_session_can_be_released_at_once(cell: Cell, principal: Principal) -> None:
    ended, open_session = await cell.session(principal), await cell.session(principal)
    await end(cell, principal, ended)
    assert await SessionRegistry(cell.database).expired([ended, open_session], timedelta(days=7)) == {ended}
    assert not await cell.database.fetch("expired", [ended], timedelta(days=7), False)
