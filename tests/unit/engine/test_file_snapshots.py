"""When a turn scans its files, and which snapshots it adds to the log."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.errors import Permanent, Unavailable
from footplate.domain.files.snapshots import (
    HOME_TREE,
    SCRATCH_TREE,
    ChildFiles,
    CollectedCommits,
    SessionFiles,
    Snapshot,
    StoredSnapshot,
    TreeMerge,
    TreeSnapshot,
)
from footplate.domain.ports.child_sessions import FileMerge
from footplate.domain.ports.engine import Claim, OpenEnvironment, SessionTree, Trees
from footplate.domain.ports.harness import CommandResult
from footplate.domain.projects.project import BaseCommit, SessionProject
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.engine.turn.file_snapshots import TurnFiles, with_commits

BASH = events.tool_use("bash", {"command": "true"}, call_id="1")
READ = events.tool_use("read", {"file_path": "x"}, call_id="2")
MCP = events.mcp_tool_use("server", "tool", {}, call_id="3")


def result(use: Event) -> Event:
    return events.tool_result_for(use, [], is_error=False, call_id="")


def make_snapshot(number: int) -> StoredSnapshot:
    return StoredSnapshot(number, Snapshot(f"{number}"))


@dataclass
class FakeTrees:
    """A fake of trees. A test changes the tree by setting `number`."""

    number: int = 0
    failures: int = 0
    scanned: list[SessionTree] = field(default_factory=list)
    home: int = 0
    """The number of the snapshot of HOME. 0: it is empty."""
    home_stores: list[bool] = field(default_factory=list)
    """For each time that HOME was stored: whether it was final."""
    commit_requests: int = 0
    commit_error: Exception | None = None
    stuck: bool = False
    incremental: list[bool] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    consolidated: list[int] = field(default_factory=list)

    async def stop_watching(self, tree: SessionTree, *, merge_packs: bool = True) -> None:
        del merge_packs
        self.stopped.append(HOME_TREE if tree.is_home else SCRATCH_TREE if tree.project is None else tree.project.id)

    def consolidate_packs_later(self, tree: SessionTree, files: SessionFiles) -> None:
        if tree.is_home:
            return
        self.consolidated.append(files.snapshots[SCRATCH_TREE if tree.project is None else tree.project.id].number)

    async def collect_commits(self, *_: object) -> CollectedCommits:
        self.commit_requests += 1
        if self.stuck:
            await asyncio.Event().wait()
        raise self.commit_error or Permanent("There are none here.")

    async def store_home(
        self, home: SessionTree, last: StoredSnapshot | None, *, is_final: bool
    ) -> StoredSnapshot | None:
        assert home.is_home
        self.home_stores.append(is_final)
        return make_snapshot(self.home) if self.home else last

    async def merge_child(self, *_: object, replaces: bool) -> TreeMerge:
        del replaces
        return TreeMerge(patch=b"patch")

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
        self.scanned.append(tree)
        return make_snapshot(self.number) if self.number else last


@dataclass
class FakeEnvironment:
    trees: Mapping[str, Path] = field(default_factory=lambda: {SCRATCH_TREE: Path("/tree")})
    inside_paths: Mapping[str, str] = field(default_factory=dict)
    home_files: Path | None = None
    was_used: bool = False
    root: str = "/tree"
    fails: tuple[str, str] | None = None
    """The directory and the first option of the `git apply` that fails."""
    commands: list[tuple[str, str]] = field(default_factory=list)

    async def ensure_open(self) -> None: ...

    async def run(self, argv: list[str], **_: object) -> CommandResult:
        directory, option = argv[2], argv[5]
        self.commands.append((directory, option))
        fails = (directory, option) == self.fails
        return CommandResult(exit_code=int(fails), stdout=b"", stderr=b"does not apply" if fails else b"", duration=0.1)


@pytest.fixture
def trees() -> FakeTrees:
    return FakeTrees()


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


def make_files(
    trees: FakeTrees,
    claim: Claim = CLAIM,
    *,
    used: bool = False,
    seen: Mapping[str, str] | None = None,
    home: Path | None = None,
    **options: Any,
) -> TurnFiles:
    environment = cast("OpenEnvironment", FakeEnvironment(was_used=used, inside_paths=seen or {}, home_files=home))
    return TurnFiles(cast("Trees", trees), claim, environment, **options)


async def scan_if_needed(files: TurnFiles, *batch: Event) -> list[TreeSnapshot] | None:
    if not files.needs_snapshot(batch):
        return None
    found = await files.take_snapshots()
    files.mark_committed(found)
    return found


async def test_files_are_scanned_before_the_first_call_and_after_calls_that_may_write(trees: FakeTrees) -> None:
    files = make_files(trees)
    assert await scan_if_needed(files, events.message("Let me see.")) is None
    trees.number = 1
    assert await scan_if_needed(files, BASH) == [TreeSnapshot(SCRATCH_TREE, make_snapshot(1), is_turn_start=True)]
    assert await scan_if_needed(files, result(BASH)) == []
    assert await scan_if_needed(files, READ) is None
    assert await scan_if_needed(files, result(READ)) is None
    assert await scan_if_needed(files, MCP) is None
    trees.number = 2
    assert await scan_if_needed(files, result(MCP), events.model_request_start()) == [
        TreeSnapshot(SCRATCH_TREE, make_snapshot(2))
    ]
    assert trees.consolidated == [1, 2], "after each commit of a snapshot"


@pytest.mark.requirement("K7")
async def test_home_is_stored_with_results_and_at_the_end(trees: FakeTrees) -> None:
    files = make_files(trees, home=Path("/home"))
    trees.home = 1
    assert await scan_if_needed(files, BASH) == [], "HOME is as the last turn left it"
    assert await scan_if_needed(files, result(BASH)) == [TreeSnapshot(HOME_TREE, make_snapshot(1))]
    assert await scan_if_needed(files, READ) is None
    assert await scan_if_needed(files, result(BASH)) == []
    trees.home = 2
    assert await files.take_final_snapshots() == [TreeSnapshot(HOME_TREE, make_snapshot(2))]
    assert trees.home_stores == [False, False, True]
    await files.close()
    assert trees.stopped == [SCRATCH_TREE, HOME_TREE]


@pytest.mark.parametrize("each_call", [True, False])
async def test_files_uploaded_ahead_are_reported_with_the_result(trees: FakeTrees, *, each_call: bool) -> None:
    files = make_files(trees, each_call=each_call)
    await scan_if_needed(files, BASH)
    trees.number = 1
    before = len(trees.scanned)
    await files.upload_ahead()
    assert len(trees.scanned) - before == each_call
    assert await scan_if_needed(files, result(BASH)) == (
        [TreeSnapshot(SCRATCH_TREE, make_snapshot(1))] if each_call else None
    )
    assert files.lock.locked() is False


async def test_a_failed_upload_ahead_changes_nothing(trees: FakeTrees) -> None:
    files = make_files(trees)
    await scan_if_needed(files, BASH)
    trees.number, trees.failures = 1, 1
    with pytest.raises(Unavailable):
        await files.upload_ahead()
    assert await scan_if_needed(files, result(BASH)) == [TreeSnapshot(SCRATCH_TREE, make_snapshot(1))]


async def test_a_file_of_an_input_is_stored_with_the_input(trees: FakeTrees) -> None:
    files = make_files(trees)
    files.note_input_file()
    trees.number = 1
    assert await scan_if_needed(files) == [TreeSnapshot(SCRATCH_TREE, make_snapshot(1), is_turn_start=True)]
    assert await scan_if_needed(files) is None
    files.note_input_file()
    trees.number = 2
    assert await scan_if_needed(files) == [TreeSnapshot(SCRATCH_TREE, make_snapshot(2), is_turn_start=True)], (
        "it came with the input too"
    )
    trees.number = 3
    assert await scan_if_needed(files, BASH) is None, "the turn's own work from here on"
    assert await scan_if_needed(files, result(BASH)) == [TreeSnapshot(SCRATCH_TREE, make_snapshot(3))]


async def test_a_later_attempt_begins_with_the_files_of_the_lost_one(trees: FakeTrees) -> None:
    files = make_files(trees, replace(CLAIM, attempt=2, files=SessionFiles({SCRATCH_TREE: make_snapshot(1)})))
    trees.number = 2
    assert await scan_if_needed(files, BASH) is None
    assert await scan_if_needed(files, result(BASH)) == [TreeSnapshot(SCRATCH_TREE, make_snapshot(2))]


@pytest.mark.parametrize(("attempt", "times"), [(1, 0), (2, 1)])
async def test_files_of_a_lost_attempt_are_scanned_if_the_next_one_calls_no_tool(
    trees: FakeTrees, attempt: int, times: int
) -> None:
    files = make_files(trees, replace(CLAIM, attempt=attempt), seen={SCRATCH_TREE: "/tree"}, each_call=False)
    assert await scan_if_needed(files, events.message("It is done.")) is None
    await files.collect_commits()
    await files.take_final_snapshots()
    assert (trees.commit_requests, len(trees.scanned)) == (times, times)


async def test_an_uncommitted_snapshot_is_reported_again(trees: FakeTrees) -> None:
    files = make_files(trees)
    trees.number = 1
    assert files.needs_snapshot([BASH])
    assert [found.stored for found in await files.take_snapshots()] == [make_snapshot(1)]
    assert [found.stored for found in await files.take_snapshots()] == [make_snapshot(1)]


@pytest.mark.parametrize(("each_call", "expected"), [(True, [True, True, False]), (False, [False, False])])
async def test_the_last_snapshot_of_a_turn_scans_every_file_and_nothing_is_watched_afterwards(
    trees: FakeTrees, expected: list[bool], *, each_call: bool
) -> None:
    files = make_files(trees, each_call=each_call)
    await scan_if_needed(files, BASH)
    await scan_if_needed(files, result(BASH))
    await files.take_final_snapshots()
    assert trees.incremental == expected
    await files.close()
    assert trees.stopped == [SCRATCH_TREE]


async def test_per_turn_snapshots_are_taken_only_at_the_beginning_and_the_end(trees: FakeTrees) -> None:
    files = make_files(trees, each_call=False)
    assert await scan_if_needed(files, BASH) == []
    trees.number = 1
    assert await scan_if_needed(files, result(BASH)) is None
    assert await files.take_final_snapshots() == [TreeSnapshot(SCRATCH_TREE, make_snapshot(1))]


@pytest.mark.parametrize(("used", "calls", "times"), [(False, [], 0), (True, [], 1), (False, [BASH], 2)])
async def test_the_last_scan_happens_only_if_files_may_have_changed(
    trees: FakeTrees, calls: list[Event], times: int, *, used: bool
) -> None:
    files = make_files(trees, used=used)
    for call in calls:
        await scan_if_needed(files, call)
    await files.take_final_snapshots()
    assert len(trees.scanned) == times


async def test_a_short_outage_of_the_object_store_loses_no_result(trees: FakeTrees) -> None:
    files = make_files(trees)
    trees.number, trees.failures = 1, 2
    assert await scan_if_needed(files, BASH) == [TreeSnapshot(SCRATCH_TREE, make_snapshot(1), is_turn_start=True)]


@pytest.mark.parametrize("error", [Permanent("git failed"), OSError("too large"), ValueError("no number")])
async def test_an_error_while_collecting_commits_fails_no_turn(trees: FakeTrees, error: Exception) -> None:
    files = make_files(trees, seen={SCRATCH_TREE: "/tree"})
    await scan_if_needed(files, BASH)
    trees.number, trees.commit_error = 1, error
    await files.collect_commits()
    assert trees.commit_requests == 1
    assert await files.take_final_snapshots() == [TreeSnapshot(SCRATCH_TREE, make_snapshot(1))]


async def test_a_user_specified_directory_is_not_scanned(trees: FakeTrees) -> None:
    files = TurnFiles(cast("Trees", trees), CLAIM, cast("OpenEnvironment", FakeEnvironment(trees={}, was_used=True)))
    assert await scan_if_needed(files, BASH) == []
    assert (await files.take_final_snapshots(), trees.scanned) == ([], [])


async def test_collecting_the_commits_of_a_failed_turn_has_a_time_limit(trees: FakeTrees) -> None:
    trees.stuck = True
    files = make_files(trees, seen={SCRATCH_TREE: "/workspace"})
    files.needs_snapshot([BASH])
    await files.collect_commits(max_seconds=0.01)
    assert trees.commit_requests == 1


@pytest.mark.parametrize(
    ("fails", "commands"),
    [
        (None, [("/a", "--check"), ("/b", "--check"), ("/a", "-"), ("/b", "-")]),
        (("/b", "--check"), [("/a", "--check"), ("/b", "--check")]),
        (("/b", "-"), [("/a", "--check"), ("/b", "--check"), ("/a", "-"), ("/b", "-"), ("/a", "--reverse")]),
    ],
)
async def test_files_of_a_child_are_added_to_all_trees_or_to_none(
    trees: FakeTrees, fails: tuple[str, str] | None, commands: list[tuple[str, str]]
) -> None:
    environment = FakeEnvironment(
        {"a": Path("/1"), "b": Path("/2")}, inside_paths={"a": "/a", "b": "/b"}, was_used=True, fails=fails
    )
    files = TurnFiles(cast("Trees", trees), CLAIM, cast("OpenEnvironment", environment))
    trees.number = 1
    merge = await files.merge_child(ChildFiles("sesn_2", SessionFiles(), SessionFiles()), replaces=False)
    assert environment.commands == commands
    expected = FileMerge(session_id="sesn_2", state="merged")
    if fails is not None:
        expected = FileMerge(session_id="sesn_2", state="failed", conflicts=("/b: does not apply",))
    assert merge == expected


@pytest.mark.requirement("C4")
def test_a_turn_has_the_commit_of_each_project() -> None:
    done = TurnOutcome(status=TurnStatus.COMPLETED)
    first, second, empty = (
        SessionProject(id=f"proj_{commit}", name="app", path="app", base=BaseCommit(commit, "main"))
        for commit in ("a", "b", None)
    )
    changed = {"proj_b": StoredSnapshot(1, Snapshot("t", None, (("HEAD", "own"), ("topic", "x"))))}
    found = with_commits(done, [first, second, empty], changed)
    assert (found.commit, found.commits) == ("a", {"proj_a": "a", "proj_b": "own"})
    assert with_commits(done, [second], changed).commit == "own"
    assert with_commits(done, [empty], {}) is done
    assert with_commits(done, [], {}) is done
