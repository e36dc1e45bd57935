"""A turn whose state cannot be stored, because the object store stays down, fails as a whole."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from bench.support.host_loss.seaweedfs import SeaweedServer
from tests.integration.engine.cell import DONE, Engine
from tests.integration.engine.test_files_of_failed_turns import create_trees
from tests.integration.store.cell import Cell

from footplate.domain.ports.harness import Entry, TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import Turn, TurnOutcome, TurnStatus
from footplate.engine.turn import file_snapshots
from footplate.store.log import fenced_turn_writes
from footplate.store.object_store import Objects
from footplate.trees.session_trees import SessionTrees

pytestmark = pytest.mark.timing

LARGE = "x" * 100_000
ENTRY = Entry("test.entry", {"text": "half"})


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[SeaweedServer]:
    server = SeaweedServer(tmp_path / "s3")
    await server.start()
    yield server
    await server.stop()


async def read_state(engine: Engine, session_id: str) -> tuple[list[str], int, int]:
    """Returns the types of all events, and the numbers of entries and snapshots."""
    async with engine.cell.database.connection() as connection:
        entries = await connection.fetchval("select count(*) from entries where session_id = $1", session_id)
        snapshots = await connection.fetchval("select count(*) from snapshots where session_id = $1", session_id)
    return await engine.types(session_id), entries, snapshots


@pytest.mark.requirement("K11")
async def test_a_turn_fails_as_a_whole_if_the_object_store_stays_down(
    idle_engine: Engine, server: SeaweedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_snapshots, "_UPLOAD_TIMEOUT", 0.5)
    monkeypatch.setattr(fenced_turn_writes, "_APPEND_SECONDS", 0.5)
    objects = Objects(server.open_store())
    engine = replace(idle_engine, cell=Cell(idle_engine.cell.database, objects, tmp_path))

    async def write_file(turn: TurnContext) -> TurnOutcome:
        """Completes, but if the store is down, the files of the turn cannot be stored."""
        await turn.log.append([events.tool_use("bash", {"command": "true"}, call_id="1")])
        await turn.environment.write("file", b"content")
        if turn.content == [events.text_block("first")]:
            await server.kill()
        return DONE

    async def append_large_body(turn: TurnContext) -> TurnOutcome:
        """Appends a message that is too large for a row, together with others."""
        await turn.log.append([events.message("Small.")], entries=[ENTRY])
        await turn.log.append([events.message("Small."), events.message(LARGE)], entries=[ENTRY, ENTRY])
        return DONE

    async def run_turn(session_id: str, text: str, count: int) -> Turn:
        await engine.send(session_id, text)
        return (await engine.wait_for_ended_turns(session_id, count))[-1]

    async with engine.worker(create_trees(SessionTrees, tmp_path, objects)):
        sessions = []
        for work, stored, entries in (
            (write_file, events.AGENT_TOOL_USE, 0),
            (append_large_body, events.AGENT_MESSAGE, 1),
        ):
            sessions.append(session_id := await engine.session(work, limits={"max_retries": 0}))
            turn = await run_turn(session_id, "first", 1)
            assert turn.status is TurnStatus.FAILED
            assert "The object store does not respond" in str(turn.result)
            types, *counts = await read_state(engine, session_id)
            assert [each for each in types if each != events.USER_MESSAGE] == [
                *(events.STATUS_RUNNING, stored, events.SESSION_ERROR, events.STATUS_IDLE)
            ]
            assert counts == [entries, 0]
        await server.start()
        for session_id, counts in zip(sessions, ([0, 1], [4, 0]), strict=True):
            assert (await run_turn(session_id, "second", 2)).status is TurnStatus.COMPLETED
            assert [*(await read_state(engine, session_id))[1:]] == counts
