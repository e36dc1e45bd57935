"""Background sessions: no previews, a retry limit per session, and a timeout that ends a turn."""

import asyncio

import pytest
from tests.integration.engine.cell import DONE, Engine

from footplate.domain import events
from footplate.domain.errors import Overloaded
from footplate.domain.ports import TurnContext
from footplate.domain.turns import Mode, Outcome, TurnStatus
from footplate.engine import clock
from footplate.stream.turn_live import TurnLive

pytestmark = pytest.mark.timing


async def test_a_turn_whose_time_is_over_keeps_what_it_has(engine: Engine) -> None:
    async def work(turn: TurnContext) -> Outcome:
        await turn.log.append([events.message("begun")])
        await turn.interrupt.wait()
        return Outcome(status=TurnStatus.INTERRUPTED, text="as far as it came")

    session_id = await engine.session(work, limits={"timeout_seconds": 0.5})
    await engine.send(session_id, "hi")
    (turn,) = await engine.ended(session_id)
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


async def test_one_that_does_not_heed_it_is_cut_off(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "GRACE", 0.3)

    async def work(turn: TurnContext) -> Outcome:
        await asyncio.sleep(120)
        return DONE

    session_id = await engine.session(work, limits={"timeout_seconds": 0.2})
    await engine.send(session_id, "hi")
    (turn,) = await engine.ended(session_id)
    assert turn.status is TurnStatus.TIMED_OUT


async def test_what_is_done_in_time_is_done(engine: Engine) -> None:
    async def work(turn: TurnContext) -> Outcome:
        return DONE

    session_id = await engine.session(work, limits={"timeout_seconds": 30})
    await engine.send(session_id, "hi")
    (turn,) = await engine.ended(session_id)
    assert turn.status is TurnStatus.COMPLETED


async def test_the_clock_goes_on_between_attempts(engine: Engine) -> None:
    attempts = 0

    async def work(turn: TurnContext) -> Outcome:
        nonlocal attempts
        attempts += 1
        if turn.interrupt.is_set():
            return Outcome(status=TurnStatus.INTERRUPTED)
        raise Overloaded("not now", retry_after=60)

    session_id = await engine.session(work, limits={"timeout_seconds": 1.5})
    await engine.send(session_id, "hi")
    (turn,) = await engine.ended(session_id)
    assert (turn.status, turn.failures, attempts) == (TurnStatus.TIMED_OUT, 1, 2)


@pytest.mark.requirement("S3")
@pytest.mark.parametrize("retries", [0, 2])
async def test_a_session_has_a_limit_of_retries_of_its_own(engine: Engine, retries: int) -> None:
    async def work(turn: TurnContext) -> Outcome:
        raise Overloaded("not now")

    session_id = await engine.session(work, limits={"max_retries": retries}, mode=Mode.BACKGROUND)
    await engine.send(session_id, "hi")
    (turn,) = await engine.ended(session_id)
    assert (turn.status, turn.attempt, turn.failures) == (TurnStatus.FAILED, retries + 1, retries)


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(("mode", "seen"), [(Mode.INTERACTIVE, 1), (Mode.BACKGROUND, 0)])
async def test_in_the_background_nothing_is_shown_before_it_is_whole(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, mode: Mode, seen: int
) -> None:
    shown: list[str] = []
    preview = TurnLive.preview

    def watched(self: TurnLive, event_type: events.PreviewType) -> object:
        shown.append(event_type)
        return preview(self, event_type)

    monkeypatch.setattr(TurnLive, "preview", watched)

    async def work(turn: TurnContext) -> Outcome:
        partial = turn.log.preview("agent.message")
        partial.write("hel")
        await turn.log.append([events.message("hello", event_id=partial.event_id)])
        return DONE

    session_id = await engine.session(work, mode=mode)
    await engine.send(session_id, "hi")
    (turn,) = await engine.ended(session_id)
    assert (turn.config["mode"], len(shown)) == (mode, seen)
    assert (await engine.types(session_id)).count(events.AGENT_MESSAGE) == 1
