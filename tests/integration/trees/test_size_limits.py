"""Repositories that would fill the host's disk: a bomb of trees, a large file, one fetch after the other."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.integration.trees.test_leaving import World, change
from tests.integration.trees.test_trees import git, project, repository

from footplate.domain.addresses import Reach
from footplate.domain.errors import Conflict, Unavailable
from footplate.trees import size_limits
from footplate.trees.mirrors import Mirrors
from footplate.trees.size_limits import RepositoryTooLarge

pytestmark = pytest.mark.timing

MOST = 1 << 20


@pytest.fixture
def mirrors(tmp_path: Path) -> Mirrors:
    return Mirrors(tmp_path / "data", root=str(tmp_path / "projects"), reach=Reach(), seconds=30, most_bytes=MOST)


def made(at: Path, *argv: str, given: bytes) -> str:
    return subprocess.run(["git", *argv], cwd=at, input=given, check=True, capture_output=True).stdout.decode().strip()


def explode(at: Path, *, wide: int, deep: int, ref: str = "HEAD") -> None:
    """A commit of some kilobytes that stands for `wide ** deep` files, in the place of all that there was."""
    found = made(at, "hash-object", "-w", "--stdin", given=b"x" * 100)
    kind = "100644 blob"
    for _ in range(deep):
        listed = "".join(f"{kind} {found}\t{number:02d}\n" for number in range(wide))
        found, kind = made(at, "mktree", given=listed.encode()), "040000 tree"
    commit = made(at, "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", found, "-p", ref, given=b"bomb")
    git(at, "update-ref", ref, commit)


async def test_a_bomb_is_not_checked_out(mirrors: Mirrors, tmp_path: Path) -> None:
    explode(repository(tmp_path / "projects" / "app"), wide=20, deep=9)
    with pytest.raises(RepositoryTooLarge, match="files of commit"):
        await mirrors.refresh("default", project())


async def test_a_fetch_ends_at_the_limit_and_leaves_nothing(mirrors: Mirrors, tmp_path: Path) -> None:
    source = repository(tmp_path / "projects" / "app")
    first = await mirrors.refresh("default", project())
    (source / "large").write_bytes(os.urandom(2 * MOST))
    git(source, "add", "-A")
    git(source, "commit", "-qm", "large")
    for _ in range(2):
        with pytest.raises(RepositoryTooLarge, match="a fetch of it"):
            await mirrors.refresh("default", project())
    mirror = mirrors.path("default", project().id)
    assert sum(path.stat().st_size for path in mirror.rglob("*") if path.is_file()) < MOST // 2
    git(source, "reset", "-q", "--hard", "HEAD~1")
    assert await mirrors.refresh("default", project()) == first


async def test_many_fetches_do_not_pass_the_limit(mirrors: Mirrors, tmp_path: Path) -> None:
    source = repository(tmp_path / "projects" / "app")

    async def grow() -> None:
        for _ in range(8):
            (source / "file").write_bytes(os.urandom(MOST // 4))
            git(source, "commit", "-qam", "more")
            await mirrors.refresh("default", project())

    with pytest.raises(RepositoryTooLarge):
        await grow()
    mirror = mirrors.path("default", project().id)
    assert sum(path.stat().st_size for path in mirror.rglob("*") if path.is_file()) < 1.2 * MOST


async def test_a_list_of_branches_without_end_is_refused(
    mirrors: Mirrors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = repository(tmp_path / "projects" / "app")
    for number in range(50):
        git(source, "branch", f"b{number}")
    monkeypatch.setattr(size_limits, "MOST_LISTED", 1000)
    with pytest.raises((RepositoryTooLarge, Unavailable), match="branches and tags"):
        await mirrors.refresh("default", project())


async def test_a_branch_that_became_a_bomb_is_not_merged_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_limits, "MOST_FILES", 10_000)
    world = World(tmp_path)
    (world.user / "text").write_text("one\ntwo\n")
    git(world.user, "add", "-A")
    git(world.user, "commit", "-qm", "first")
    git(world.user, "branch", "next")
    session = await world.session()
    change(session.tree, 1, "three")
    (session.tree / "text").rename(session.tree / "renamed")
    await session.turn()
    explode(world.user, wide=20, deep=9, ref="refs/heads/next")
    with pytest.raises(Conflict, match="too large"):
        await session.merge()
