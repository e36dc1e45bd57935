"""The persistent shell continues with the state after the last call whose result is in the log."""

import pytest
from tests.integration.engine.cell import DONE, Engine

from footplate.domain.errors import Overloaded
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus

LOOK = 'echo "$PWD|$TOKEN|$LATER|$FOOTPLATE_TURN_ID"'


async def run_call(turn: TurnContext, command: str, *, records_result: bool = True) -> str:
    use = events.tool_use("bash", {"command": command}, call_id=f"{turn.turn_id}-{turn.attempt}")
    await turn.log.append([use])
    result = await turn.environment.shell(command, timeout=30)
    if records_result:
        await turn.log.append([events.tool_result_for(use, [], is_error=False, call_id=turn.turn_id)])
    return result.stdout.decode().strip()


@pytest.mark.requirement("K7")
async def test_an_attempt_and_a_later_turn_continue_from_the_last_result(idle_engine: Engine) -> None:
    engine = idle_engine
    seen: list[tuple[str, str]] = []

    async def work(turn: TurnContext) -> TurnOutcome:
        seen.append((turn.turn_id, await run_call(turn, LOOK)))
        if len(seen) == 1:
            await run_call(turn, "mkdir sub; cd sub; export TOKEN=secret FOOTPLATE_TURN_ID=old")
            await run_call(turn, "cd /; export LATER=1", records_result=False)
            raise Overloaded("Not now.")
        return DONE

    async with engine.worker():
        session_id = await engine.session(work, limits={"max_retries": 1})
        await engine.send(session_id, "hi")
        (turn,) = await engine.wait_for_ended_turns(session_id)
        assert turn.status is TurnStatus.COMPLETED
        await engine.send(session_id, "again")
        await engine.wait_for_ended_turns(session_id, 2)
    root = str(engine.folder / session_id)
    assert [line for _, line in seen] == [
        f"{root}|||{seen[0][0]}",
        f"{root}/sub|secret||{seen[1][0]}",
        f"{root}/sub|secret||{seen[2][0]}",
    ]
    async with engine.cell.database.connection() as connection:
        rows = await connection.fetch("select organisation, state from shell_states where session_id = $1", session_id)
    (row,) = rows
    assert row["organisation"] == engine.principal.organisation
    assert row["state"] == {"base": "root", "directory": "sub", "variables": {"TOKEN": "secret"}}
