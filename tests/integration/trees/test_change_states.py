"""A diff tells committed, staged, unstaged and untracked changes apart, as git does in the session's working tree."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.trees.test_delivery import Session, World, change, git

from footplate.domain.errors import Conflict
from footplate.domain.files.snapshots import CHANGE_STATES, ChangeState, FileChange, StoredSnapshot
from footplate.trees.diffs.diff_reader import DiffReader

pytestmark = [pytest.mark.requirement("R4"), pytest.mark.timing]

Changes = dict[str, list[tuple[str, str, int | None, int | None]]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    (world.user / "text").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    (world.user / "old").write_text("".join(f"name {number}\n" for number in range(1, 21)))
    (world.user / ".gitignore").write_text("ignored\n")
    git(world.user, "add", "-A")
    git(world.user, "commit", "-qm", "first")
    return world


def describe(change: FileChange) -> tuple[str, str, int | None, int | None]:
    return change.path.decode(), change.status, change.added, change.deleted


class SessionDiff:
    def __init__(self, session: Session, old: StoredSnapshot | None = None) -> None:
        diff = session.delivery().diff
        self.diff = replace(diff, old=old)
        self.world = session.world

    async def states(self, data: Path | None = None) -> Changes:
        found = await self._reader(data).changes(self.diff)
        assert found.states is not None
        assert list(found.states) == list(CHANGE_STATES)
        return {state: [describe(change) for change in changes] for state, changes in found.states.items()}

    async def patch(self, state: ChangeState) -> str:
        async with self._reader(None).patch(self.diff, state) as pieces:
            return b"".join([piece async for piece in pieces]).decode()

    def _reader(self, data: Path | None) -> DiffReader:
        return DiffReader(data or self.world.data, self.world.objects, max_concurrent=1)


async def test_changes_of_each_state_are_distinct(world: World, tmp_path: Path) -> None:
    session = await world.session()
    tree = session.tree
    change(tree, 1, "committed")
    git(tree, "commit", "-qam", "the agent's")
    change(tree, 2, "staged")
    git(tree, "mv", "old", "new")
    (tree / "picture").write_bytes(b"\0\1")
    git(tree, "add", "-A")
    change(tree, 3, "unstaged")
    (tree / "picture").write_bytes(b"\0\1\2")
    (tree / "untracked").write_text("a\nb\n")
    (tree / "ignored").write_text("x\n")
    before = git(tree, "status", "--porcelain")
    await session.turn()
    expected: Changes = {
        "committed": [("text", "modified", 1, 1)],
        "staged": [("new", "renamed", 0, 0), ("picture", "added", None, None), ("text", "modified", 1, 1)],
        "unstaged": [("picture", "modified", None, None), ("text", "modified", 1, 1)],
        "untracked": [("untracked", "added", 2, 0)],
    }
    diff = SessionDiff(session)
    assert await diff.states() == expected
    assert git(tree, "status", "--porcelain") == before
    assert git(tree, "fsck", "--dangling", "--no-reflogs") == ""
    for state, added in [("committed", "+committed"), ("staged", "+staged"), ("unstaged", "+unstaged")]:
        patch = await diff.patch(state)  # pyrefly: ignore[bad-argument-type]
        assert [line for line in patch.splitlines() if line.startswith("+") and line[1:2] != "+"] == [added]
    assert (await diff.patch("untracked")).endswith("+++ b/untracked\n@@ -0,0 +1,2 @@\n+a\n+b\n")
    shutil.rmtree(world.data)
    assert await diff.states(tmp_path / "elsewhere") == expected


async def test_a_later_diff_has_the_commits_since_its_start(world: World) -> None:
    session = await world.session()
    change(session.tree, 1, "first turn")
    git(session.tree, "commit", "-qam", "one")
    await session.turn()
    first = session.stored
    change(session.tree, 2, "second turn")
    git(session.tree, "add", "-A")
    await session.turn()
    assert (await SessionDiff(session, first).states())["staged"] == [("text", "modified", 1, 1)]
    git(session.tree, "commit", "-qm", "two")
    await session.turn()
    assert await SessionDiff(session, first).states() == {
        "committed": [("text", "modified", 1, 1)],
        "staged": [],
        "unstaged": [],
        "untracked": [],
    }
    assert (await SessionDiff(session).states())["committed"] == [("text", "modified", 2, 2)]


async def test_before_and_after_the_first_commit_of_a_repository(tmp_path: Path) -> None:
    world = World(tmp_path / "bare")
    session = await world.session()
    (session.tree / "staged").write_text("one\n")
    git(session.tree, "add", "staged")
    (session.tree / "untracked").write_text("two\n")
    await session.turn()
    assert await SessionDiff(session).states() == {
        "committed": [],
        "staged": [("staged", "added", 1, 0)],
        "unstaged": [],
        "untracked": [("untracked", "added", 1, 0)],
    }
    git(session.tree, "commit", "-qm", "first")
    await session.turn()
    assert (await SessionDiff(session).states())["committed"] == [("staged", "added", 1, 0)]


async def test_an_index_with_conflicts_counts_as_the_commit(world: World) -> None:
    session = await world.session()
    tree = session.tree
    git(tree, "switch", "-qc", "other")
    change(tree, 1, "other")
    git(tree, "commit", "-qam", "other")
    git(tree, "switch", "-q", "main")
    change(tree, 1, "main")
    git(tree, "commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        git(tree, "merge", "other")
    await session.turn()
    states = await SessionDiff(session).states()
    assert (states["staged"], [path for path, *_ in states["unstaged"]]) == ([], ["text"])


async def test_commits_that_an_earlier_version_stored_have_no_states(world: World) -> None:
    session = await world.session()
    git(session.tree, "commit", "-q", "--allow-empty", "-m", "one")
    (session.tree / "file").write_text("x\n")
    await session.turn()
    assert session.stored is not None
    earlier = replace(session.stored, snapshot=replace(session.stored.snapshot, bundles=None))
    diff = SessionDiff(session)
    diff.diff = replace(diff.diff, new=earlier)
    found = await DiffReader(world.data, world.objects, max_concurrent=1).changes(diff.diff)
    assert ([file.path for file in found.files], found.states) == ([b"file"], None)
    with pytest.raises(Conflict, match="earlier version"):
        await diff.patch("staged")
