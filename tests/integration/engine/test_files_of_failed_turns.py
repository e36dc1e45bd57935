"""The files written by a failed turn are in the log, and an object store that does not respond fails no commit. A turn
in a user's directory records the commit there.
"""

from pathlib import Path

import pytest
from tests.integration.engine.cell import DONE, Engine

from footplate.domain.errors import ModelRefused, Overloaded
from footplate.domain.files.snapshots import CollectedCommits, StoredSnapshot
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.engine import SessionTree
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.store.object_store import Objects
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.upload import SnapshotUploader

FAILURES = [ModelRefused("No."), Overloaded("Not now.")]

COMMIT = (
    "git init -q && echo 1 > file && git add file && "
    "git -c user.name=agent -c user.email=agent@example.com commit -qm own && git rev-parse HEAD"
)


class FullSessionTrees(SessionTrees):
    """Session trees whose object store is full."""

    async def store_snapshot(
        self,
        tree: SessionTree,
        last: StoredSnapshot | None,
        collected: CollectedCommits | None = None,
        *,
        incremental: bool = False,
    ) -> StoredSnapshot | None:
        del tree, last, collected, incremental
        raise OSError("No space left on device")


def create_trees(kind: type[SessionTrees], root: Path, objects: Objects | None = None) -> SessionTrees:
    mirrors = Mirrors(root, root=str(root), address_policy=AddressPolicy(), seconds=60)
    return kind(root, mirrors, SnapshotUploader(objects or Objects.open(None, root)), seconds=60)


async def run_failing_turn(engine: Engine, trees: SessionTrees, error: Exception) -> list[int]:
    """Runs a turn that writes and fails on every attempt, and returns the numbers of its snapshots."""

    async def work(turn: TurnContext) -> TurnOutcome:
        await turn.log.append([events.tool_use("bash", {"command": "true"}, call_id=f"{turn.attempt}")])
        await turn.environment.write("file", f"{turn.attempt}".encode())
        raise error

    async with engine.worker(trees):
        session_id = await engine.session(work, limits={"max_retries": 1})
        await engine.send(session_id, "hi")
        (turn,) = await engine.wait_for_ended_turns(session_id)
    assert turn.status is TurnStatus.FAILED
    async with engine.cell.database.connection() as connection:
        found = await connection.fetch("select number from snapshots where session_id = $1 order by seq", session_id)
    return [row["number"] for row in found]


@pytest.mark.parametrize(("error", "attempts"), zip(FAILURES, (1, 2), strict=True))
async def test_the_files_of_a_failed_attempt_are_stored(
    idle_engine: Engine, tmp_path: Path, error: Exception, attempts: int
) -> None:
    numbers = await run_failing_turn(idle_engine, create_trees(SessionTrees, tmp_path), error)
    assert numbers == [*range(attempts)]


async def test_files_that_cannot_be_stored_fail_no_commit(idle_engine: Engine, tmp_path: Path) -> None:
    assert await run_failing_turn(idle_engine, create_trees(FullSessionTrees, tmp_path), ModelRefused("No.")) == []


@pytest.mark.requirement("K2")
@pytest.mark.parametrize("error", FAILURES)
async def test_the_commits_of_a_failed_turn_are_collected(
    idle_engine: Engine, tmp_path: Path, error: Exception
) -> None:
    made: list[str] = []

    async def work(turn: TurnContext) -> TurnOutcome:
        await turn.environment.write("before", b"as of a project")
        await turn.log.append([events.tool_use("bash", {"command": COMMIT}, call_id="1")])
        ran = await turn.environment.run(["sh", "-c", COMMIT])
        made.append(ran.stdout.decode().strip())
        raise error

    async with idle_engine.worker(create_trees(SessionTrees, tmp_path), tree="proj_1"):
        session_id = await idle_engine.session(work, limits={"max_retries": 0})
        await idle_engine.send(session_id, "hi")
        (turn,) = await idle_engine.wait_for_ended_turns(session_id)
    assert turn.status is TurnStatus.FAILED
    async with idle_engine.cell.database.connection() as connection:
        found = await connection.fetch("select commits from snapshots where session_id = $1 order by seq", session_id)
    assert found[-1]["commits"].get("HEAD") == made[0]


@pytest.mark.requirement("C4")
async def test_a_turn_in_a_directory_has_its_commit(idle_engine: Engine) -> None:
    made: list[str] = []

    async def work(turn: TurnContext) -> TurnOutcome:
        if not made:
            ran = await turn.environment.run(["sh", "-c", COMMIT])
            made.append(ran.stdout.decode().strip())
        return DONE

    async with idle_engine.worker():
        session_id = await idle_engine.session(work, context={"directory": "/nonexistent"})
        for count in (1, 2):
            await idle_engine.send(session_id, "hi")
            turns = await idle_engine.wait_for_ended_turns(session_id, count)
    first, second = turns
    assert first.result["commit"] == made[0]
    assert "commit" not in second.result, "it ran nothing"
