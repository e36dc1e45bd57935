"""Lazy environments are opened by the first use, or at once if files may have changed."""

import pytest
from tests.integration.engine.cell import DONE, Engine, Work

from footplate.domain.errors import Overloaded
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus

pytestmark = pytest.mark.timing


async def _complete(turn: TurnContext) -> TurnOutcome:
    del turn
    return DONE


async def _count_openings(
    engine: Engine, work: Work, *, limits: JsonObject | None = None, context: JsonObject | None = None
) -> int:
    """Runs a turn to completion and returns how many environments were opened for it."""
    async with engine.worker():
        session_id = await engine.session(work, limits=limits, context=context)
        await engine.send(session_id, "hi")
        (turn,) = await engine.wait_for_ended_turns(session_id)
    assert turn.status is TurnStatus.COMPLETED
    return engine.opened.count(session_id)


async def test_a_turn_without_a_tool_opens_no_environment(engine: Engine) -> None:
    assert await _count_openings(engine, _complete) == 0


async def test_the_first_use_opens_the_environment_once(engine: Engine) -> None:
    async def work(turn: TurnContext) -> TurnOutcome:
        await turn.environment.write("file", b"1")
        assert await turn.environment.read("file") == b"1"
        return DONE

    assert await _count_openings(engine, work) == 1


async def test_a_second_attempt_opens_the_environment_at_once(engine: Engine) -> None:
    """The lost attempt may have changed files."""

    async def work(turn: TurnContext) -> TurnOutcome:
        if turn.attempt == 1:
            raise Overloaded("Not now.")
        return DONE

    assert await _count_openings(engine, work, limits={"max_retries": 1}) == 1


async def test_a_session_with_a_directory_opens_its_environment_at_once(engine: Engine) -> None:
    """Opening may be refused: then the turn fails before it pays for a model request."""
    assert await _count_openings(engine, _complete, context={"directory": "/"}) == 1
