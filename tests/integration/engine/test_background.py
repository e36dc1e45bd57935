"""Background sessions: no previews, a retry limit per session, and a timeout that ends a turn."""

import asyncio
import time

import pytest
from tests.integration.engine.cell import DONE, Engine

from footplate.domain.audit import AuditFilter
from footplate.domain.errors import Overloaded
from footplate.domain.pagination import Page
from footplate.domain.ports.api import Input
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import Mode, SessionStatus, TurnOutcome, TurnStatus
from footplate.engine.turn import timeout
from footplate.stack.orphan_processes import wait_until
from footplate.stream.turn_publisher import TurnPublisher

pytestmark = pytest.mark.timing


async def test_a_turn_that_times_out_keeps_its_partial_result(engine: Engine) -> None:
    async def work(turn: TurnContext) -> TurnOutcome:
        await turn.log.append([events.message("begun")])
        await turn.interrupt.wait()
        return TurnOutcome(status=TurnStatus.INTERRUPTED, text="as far as it came")

    session_id = await engine.session(work, limits={"timeout_seconds": 0.5})
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert turn.status is TurnStatus.TIMED_OUT
    assert (turn.result["success"], turn.result["text"]) == (False, "as far as it came")
    assert "limit of 0.5 s" in str(turn.result["error"])
    assert turn.started_at is not None
    assert turn.ended_at is not None
    assert 0.5 <= (turn.ended_at - turn.started_at).total_seconds() < 20
    *_, message, _error, idle = await engine.cell.positions(session_id, engine.principal)
    assert message.event.type == events.AGENT_MESSAGE
    assert idle.event.body["stop_reason"] == {"type": "end_turn"}
    assert await engine.errors(session_id) == [("unknown_error", "exhausted")]


async def test_a_turn_that_ignores_its_timeout_is_cancelled(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeout, "STOP_GRACE_SECONDS", 0.3)

    async def work(turn: TurnContext) -> TurnOutcome:
        await asyncio.sleep(120)
        return DONE

    session_id = await engine.session(work, limits={"timeout_seconds": 0.2})
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert turn.status is TurnStatus.TIMED_OUT


async def test_a_turn_within_its_timeout_completes(engine: Engine) -> None:
    async def work(turn: TurnContext) -> TurnOutcome:
        return DONE

    session_id = await engine.session(work, limits={"timeout_seconds": 30})
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert turn.status is TurnStatus.COMPLETED


async def test_the_timeout_includes_the_waits_between_attempts(engine: Engine) -> None:
    attempts = 0

    async def work(turn: TurnContext) -> TurnOutcome:
        nonlocal attempts
        attempts += 1
        if turn.interrupt.is_set():
            return TurnOutcome(status=TurnStatus.INTERRUPTED)
        raise Overloaded("not now", retry_after=60)

    session_id = await engine.session(work, limits={"timeout_seconds": 1.5})
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, turn.failures, attempts) == (TurnStatus.TIMED_OUT, 1, 2)


@pytest.mark.requirement("S3")
@pytest.mark.parametrize("retries", [0, 2])
async def test_a_session_has_its_own_retry_limit(engine: Engine, retries: int) -> None:
    async def work(turn: TurnContext) -> TurnOutcome:
        raise Overloaded("not now")

    session_id = await engine.session(work, limits={"max_retries": retries}, mode=Mode.BACKGROUND)
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.status, turn.attempt, turn.failures) == (TurnStatus.FAILED, retries + 1, retries)


@pytest.mark.requirement("R7", "S10")
async def test_a_session_has_its_own_retry_delay_and_its_errors_are_audited(engine: Engine) -> None:
    times: list[float] = []

    async def work(turn: TurnContext) -> TurnOutcome:
        times.append(time.monotonic())
        raise Overloaded("a secret of the provider")

    session_id = await engine.session(work, limits={"max_retries": 1, "retry_delay_seconds": 0.8})
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert turn.config["retry_delay_seconds"] == 0.8
    assert times[1] - times[0] >= 0.8, "the server's default is 0.05 s"
    entries = await engine.cell.reads.audit(
        engine.principal, Page(limit=9, order="asc"), AuditFilter(kind="error", session=session_id)
    )
    assert [(entry.session, entry.turn, entry.outcome, entry.content) for entry in entries] == [
        (session_id, turn.id, "retried", {"error": "model_overloaded_error", "status": "rescheduling", "attempt": 1}),
        (session_id, turn.id, "failed", {"error": "model_overloaded_error", "status": "failed", "attempt": 2}),
    ]
    errors = [
        item.event.id
        for item in await engine.cell.positions(session_id, engine.principal)
        if item.event.type == events.SESSION_ERROR
    ]
    assert [entry.event for entry in entries] == errors


async def test_an_interrupt_ends_the_wait_for_the_next_attempt(engine: Engine) -> None:
    async def work(turn: TurnContext) -> TurnOutcome:
        if turn.interrupt.is_set():
            return TurnOutcome(status=TurnStatus.INTERRUPTED)
        raise Overloaded("not now")

    session_id = await engine.session(work, limits={"retry_delay_seconds": 3600})
    await engine.send(session_id, "hi")

    async def waits() -> bool:
        return (await engine.cell.reads.session(engine.principal, session_id)).status is SessionStatus.RESCHEDULING

    assert await wait_until(waits, 10)
    await engine.send(session_id, Input(type=events.USER_INTERRUPT, body={}))
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert turn.status is TurnStatus.INTERRUPTED


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(("mode", "seen"), [(Mode.INTERACTIVE, 1), (Mode.BACKGROUND, 0)])
async def test_a_background_session_publishes_no_previews(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, mode: Mode, seen: int
) -> None:
    shown: list[str] = []
    preview = TurnPublisher.preview

    def watched(self: TurnPublisher, event_type: events.PreviewType) -> object:
        shown.append(event_type)
        return preview(self, event_type)

    monkeypatch.setattr(TurnPublisher, "preview", watched)

    async def work(turn: TurnContext) -> TurnOutcome:
        partial = turn.log.preview("agent.message")
        partial.write("hel")
        await turn.log.append([events.message("hello", event_id=partial.event_id)])
        return DONE

    session_id = await engine.session(work, mode=mode)
    await engine.send(session_id, "hi")
    (turn,) = await engine.wait_for_ended_turns(session_id)
    assert (turn.config["mode"], len(shown)) == (mode, seen)
    assert (await engine.types(session_id)).count(events.AGENT_MESSAGE) == 1
