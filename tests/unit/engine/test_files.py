"""When a turn scans its files, and which snapshots it adds to the log."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from footplate.domain import events
from footplate.domain.agents import ResolvedConfig
from footplate.domain.errors import Permanent, Unavailable
from footplate.domain.events import Event
from footplate.domain.running import Claim, SessionTree, OpenEnvironment, Trees
from footplate.domain.snapshots import SCRATCH_TREE, CollectedCommits, SessionFiles, StoredSnapshot, Snapshot, TreeSnapshot
from footplate.engine.files import TurnFiles

BASH = events.tool_use("bash", {"command": "true"}, call_id="1")
READ = events.tool_use("read", {"file_path": "x"}, call_id="2")
MCP = events.mcp_tool_use("server", "tool", {}, call_id="3")


def result(use: Event) -> Event:
    return events.tool_result_for(use, [], is_error=False, call_id="")


def kept(number: int) -> StoredSnapshot:
    return StoredSnapshot(number, Snapshot(f"{number}"))


@dataclass
class TwinTrees:
    """A fake of trees. A test changes the tree by setting `number`."""

    number: int = 0
    failures: int = 0
    looked: list[SessionTree] = field(default_factory=list)
    asked: int = 0
    broken: Exception | None = None
    stuck: bool = False
    incremental: list[bool] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    async def stop_watching(self, tree: SessionTree, *, merge_packs: bool = True) -> None:
        del merge_packs
        self.stopped.append(SCRATCH_TREE if tree.project is None else tree.project.id)

    async def collect_commits(self, *_: object) -> CollectedCommits:
        self.asked += 1
        if self.stuck:
            await asyncio.Event().wait()
        raise self.broken or Permanent("There are none here.")

    async def store_snapshot(
        self,
        tree: SessionTree,
        last: StoredSnapshot | None,
        collected: CollectedCommits | None = None,
        *,
        incremental: bool = False,
    ) -> StoredSnapshot | None:
        assert collected is None
        self.incremental.append(incremental)
        if self.failures:
            self.failures -= 1
            raise Unavailable("The object store does not answer.")
        self.looked.append(tree)
        return kept(self.number) if self.number else last


@dataclass
class TwinEnvironment:
    trees: Mapping[str, Path] = field(default_factory=lambda: {SCRATCH_TREE: Path("/tree")})
    inside_paths: Mapping[str, str] = field(default_factory=dict)
    was_used: bool = False

    async def ensure_open(self) -> None: ...


@pytest.fixture
def trees() -> TwinTrees:
    return TwinTrees()


CLAIM = Claim(
    organisation="org",
    session_id="sesn_1",
    epoch=1,
    turn_id="turn_1",
    attempt=1,
    failures=0,
    first_seq=1,
    control_seq=0,
    controls_seq=0,
    config=cast("ResolvedConfig", type("Config", (), {"projects": ()})()),
    content=(),
    context={},
    entries=0,
)


def files_of(
    trees: TwinTrees,
    claim: Claim = CLAIM,
    *,
    used: bool = False,
    seen: Mapping[str, str] | None = None,
    **options: Any,
) -> TurnFiles:
    environment = cast("OpenEnvironment", TwinEnvironment(was_used=used, inside_paths=seen or {}))
    return TurnFiles(cast("Trees", trees), claim, environment, **options)


async def looked(files: TurnFiles, *batch: Event) -> list[TreeSnapshot] | None:
    if not files.needs_snapshot(batch):
        return None
    found = await files.take_snapshots()
    files.mark_committed(found)
    return found


async def test_they_are_looked_at_before_the_first_call_and_with_what_may_have_written(trees: TwinTrees) -> None:
    files = files_of(trees)
    assert await looked(files, events.message("Let me see.")) is None
    trees.number = 1
    assert await looked(files, BASH) == [TreeSnapshot(SCRATCH_TREE, kept(1), is_turn_start=True)]
    assert await looked(files, result(BASH)) == []
    assert await looked(files, READ) is None
    assert await looked(files, result(READ)) is None
    assert await looked(files, MCP) is None
    trees.number = 2
    assert await looked(files, result(MCP), events.model_request_start()) == [TreeSnapshot(SCRATCH_TREE, kept(2))]


@pytest.mark.parametrize("each_call", [True, False])
async def test_files_uploaded_ahead_are_reported_with_the_result(trees: TwinTrees, *, each_call: bool) -> None:
    files = files_of(trees, each_call=each_call)
    await looked(files, BASH)
    trees.number = 1
    before = len(trees.looked)
    await files.upload_ahead()
    assert len(trees.looked) - before == each_call
    assert await looked(files, result(BASH)) == ([TreeSnapshot(SCRATCH_TREE, kept(1))] if each_call else None)
    assert files.lock.locked() is False


async def test_a_failed_upload_ahead_changes_nothing(trees: TwinTrees) -> None:
    files = files_of(trees)
    await looked(files, BASH)
    trees.number, trees.failures = 1, 1
    with pytest.raises(Unavailable):
        await files.upload_ahead()
    assert await looked(files, result(BASH)) == [TreeSnapshot(SCRATCH_TREE, kept(1))]


async def test_a_file_that_an_input_brought_comes_with_what_tells_of_it(trees: TwinTrees) -> None:
    files = files_of(trees)
    files.note_input_file()
    trees.number = 1
    assert await looked(files) == [TreeSnapshot(SCRATCH_TREE, kept(1), is_turn_start=True)]
    assert await looked(files) is None
    files.note_input_file()
    trees.number = 2
    assert await looked(files) == [TreeSnapshot(SCRATCH_TREE, kept(2), is_turn_start=True)], "it came with the input too"
    trees.number = 3
    assert await looked(files, BASH) is None, "the turn's own work from here on"
    assert await looked(files, result(BASH)) == [TreeSnapshot(SCRATCH_TREE, kept(3))]


async def test_a_later_attempt_begins_with_what_the_lost_one_left(trees: TwinTrees) -> None:
    files = files_of(trees, replace(CLAIM, attempt=2, files=SessionFiles({SCRATCH_TREE: kept(1)})))
    trees.number = 2
    assert await looked(files, BASH) is None
    assert await looked(files, result(BASH)) == [TreeSnapshot(SCRATCH_TREE, kept(2))]


@pytest.mark.parametrize(("attempt", "times"), [(1, 0), (2, 1)])
async def test_what_a_lost_attempt_wrote_is_looked_at_where_the_next_one_only_answers(
    trees: TwinTrees, attempt: int, times: int
) -> None:
    files = files_of(trees, replace(CLAIM, attempt=attempt), seen={SCRATCH_TREE: "/tree"}, each_call=False)
    assert await looked(files, events.message("It is done.")) is None
    await files.collect_commits()
    await files.take_final_snapshots()
    assert (trees.asked, len(trees.looked)) == (times, times)


async def test_what_was_not_committed_is_told_again(trees: TwinTrees) -> None:
    files = files_of(trees)
    trees.number = 1
    assert files.needs_snapshot([BASH])
    assert [found.stored for found in await files.take_snapshots()] == [kept(1)]
    assert [found.stored for found in await files.take_snapshots()] == [kept(1)]


@pytest.mark.parametrize(("each_call", "expected"), [(True, [True, True, False]), (False, [False, False])])
async def test_the_last_snapshot_of_a_turn_scans_every_file_and_nothing_is_watched_afterwards(
    trees: TwinTrees, expected: list[bool], *, each_call: bool
) -> None:
    files = files_of(trees, each_call=each_call)
    await looked(files, BASH)
    await looked(files, result(BASH))
    await files.take_final_snapshots()
    assert trees.incremental == expected
    await files.close()
    assert trees.stopped == [SCRATCH_TREE]


async def test_by_turns_only_its_beginning_and_its_end_count(trees: TwinTrees) -> None:
    files = files_of(trees, each_call=False)
    assert await looked(files, BASH) == []
    trees.number = 1
    assert await looked(files, result(BASH)) is None
    assert await files.take_final_snapshots() == [TreeSnapshot(SCRATCH_TREE, kept(1))]


@pytest.mark.parametrize(("used", "calls", "times"), [(False, [], 0), (True, [], 1), (False, [BASH], 2)])
async def test_at_the_end_only_where_something_can_have_changed(
    trees: TwinTrees, calls: list[Event], times: int, *, used: bool
) -> None:
    files = files_of(trees, used=used)
    for call in calls:
        await looked(files, call)
    await files.take_final_snapshots()
    assert len(trees.looked) == times


async def test_a_store_that_is_away_for_a_moment_costs_no_result(trees: TwinTrees) -> None:
    files = files_of(trees)
    trees.number, trees.failures = 1, 2
    assert await looked(files, BASH) == [TreeSnapshot(SCRATCH_TREE, kept(1), is_turn_start=True)]


@pytest.mark.parametrize("error", [Permanent("git failed"), OSError("too large"), ValueError("no number")])
async def test_commits_that_cannot_be_had_fail_no_turn(trees: TwinTrees, error: Exception) -> None:
    files = files_of(trees, seen={SCRATCH_TREE: "/tree"})
    await looked(files, BASH)
    trees.number, trees.broken = 1, error
    await files.collect_commits()
    assert trees.asked == 1
    assert await files.take_final_snapshots() == [TreeSnapshot(SCRATCH_TREE, kept(1))]


async def test_a_directory_that_a_user_named_is_left_alone(trees: TwinTrees) -> None:
    files = TurnFiles(cast("Trees", trees), CLAIM, cast("OpenEnvironment", TwinEnvironment(trees={}, was_used=True)))
    assert await looked(files, BASH) == []
    assert (await files.take_final_snapshots(), trees.looked) == ([], [])


async def test_commits_of_a_turn_that_fails_are_not_waited_for_long(trees: TwinTrees) -> None:
    trees.stuck = True
    files = files_of(trees, seen={SCRATCH_TREE: "/workspace"})
    files.needs_snapshot([BASH])
    await files.collect_commits(max_seconds=0.01)
    assert trees.asked == 1
