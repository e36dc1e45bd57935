"""A session's HOME is stored when it has changed, and restored on another host."""

import math
import os
import subprocess
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import contents

from footplate.domain.files.snapshots import HOME_TREE, SessionFiles, StoredSnapshot
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.engine import SessionTree
from footplate.store.object_store import Objects
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots import full_snapshot
from footplate.trees.snapshots.upload import SnapshotUploader

pytestmark = pytest.mark.requirement("K7")


class HomeHost:
    def __init__(self, world: Path, name: str, max_home_bytes: int = 1 << 20) -> None:
        self.home = world / name / "home"
        self.home.mkdir(parents=True)
        mirrors = Mirrors(world / name, root=str(world), address_policy=AddressPolicy(), seconds=60)
        uploader = SnapshotUploader(Objects.open(None, world))
        self.trees = SessionTrees(world / name, mirrors, uploader, seconds=60, max_home_bytes=max_home_bytes)

    async def store(self, last: StoredSnapshot | None, *, is_final: bool = True) -> StoredSnapshot | None:
        tree = SessionTree(
            organisation="default", session_id="sesn_1", project=None, files=self.home, is_additional=True, is_home=True
        )
        return await self.trees.store_home(tree, last, is_final=is_final)

    async def restore(self, stored: StoredSnapshot | None, session_id: str = "sesn_1", *ancestors: str) -> None:
        files = SessionFiles({} if stored is None else {HOME_TREE: stored}, ancestors)
        await self.trees.restore_home(
            "default", session_id, self.home, (os.geteuid(), os.getegid()), files, deadline=math.inf
        )


@pytest.fixture
def a(tmp_path: Path) -> HomeHost:
    return HomeHost(tmp_path, "a")


@pytest.fixture
def b(tmp_path: Path) -> HomeHost:
    return HomeHost(tmp_path, "b")


def fill(home: Path) -> None:
    (home / ".ssh").mkdir(mode=0o700)
    (home / ".ssh" / "id").write_text("key")
    (home / ".ssh" / "id").chmod(0o600)
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "tool").write_text("#!/bin/sh\n")
    (home / ".local" / "bin" / "tool").chmod(0o755)
    (home / "link").symlink_to(".local/bin/tool")
    (home / "dotfiles").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=home / "dotfiles", check=True)
    (home / "dotfiles" / "rc").write_text("rc")


async def test_another_host_has_the_files_and_no_caches(a: HomeHost, b: HomeHost) -> None:
    fill(a.home)
    before = contents(a.home)
    for excluded in (".cache/pip/x", ".npm/y", ".cargo/registry/z", "tools/node_modules/m", ".footplate/scratch"):
        (a.home / excluded).parent.mkdir(parents=True)
        (a.home / excluded).write_text("large")
    stored = await a.store(None)
    assert stored is not None
    (b.home / "outdated").write_text("from an earlier turn here")
    await b.restore(stored)
    assert contents(b.home) == before
    assert [(b.home / ".ssh" / name).stat().st_mode & 0o777 for name in ("", "id")] == [0o700, 0o600]
    assert (b.home / ".local" / "bin" / "tool").stat().st_mode & 0o777 == 0o700
    assert await b.store(stored) == stored
    (b.home / "mine").write_text("x")
    await b.restore(stored)
    assert (b.home / "mine").exists(), "HOME continues from the snapshot in the log, so it is left as it is"


async def test_a_home_without_changes_is_not_read_again(a: HomeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Path] = []
    take = full_snapshot.take_snapshot

    async def count(git_dir: Path, work_tree: Path, **options: object) -> object:
        taken.append(work_tree)
        return await take(git_dir, work_tree, **options)  # pyrefly: ignore[bad-argument-type]

    monkeypatch.setattr(full_snapshot, "take_snapshot", count)
    assert await a.store(None, is_final=False) is None
    assert await a.store(None) is None
    (a.home / ".cache").mkdir()
    (a.home / ".cache" / "file").write_text("x")
    assert await a.store(None) is None, "only excluded files"
    assert taken == []
    (a.home / "file").write_text("1")
    first = await a.store(None)
    for _ in range(2):
        assert await a.store(first, is_final=False) == await a.store(first) == first
    assert len(taken) == 1
    (a.home / "file").write_text("2")
    second = await a.store(first, is_final=False)
    assert second is not None
    assert second != first
    (a.home / "file").unlink()
    third = await a.store(second)
    assert third is not None
    assert third.snapshot != second.snapshot
    assert len(taken) == 3


async def test_a_snapshot_that_did_not_reach_the_log_is_taken_again(a: HomeHost, b: HomeHost) -> None:
    (a.home / "file").write_text("1")
    first = await a.store(None)
    (a.home / "file").write_text("2")
    lost = await a.store(first)
    again = await a.store(first)
    assert again == lost
    assert again is not None
    await b.restore(again)
    assert (b.home / "file").read_text() == "2"


async def test_a_large_home_stays_on_its_host(tmp_path: Path) -> None:
    host = HomeHost(tmp_path, "c", max_home_bytes=1000)
    (host.home / "small").write_text("x")
    stored = await host.store(None)
    (host.home / "large").write_bytes(bytes(1000))
    assert await host.store(stored) == stored
    (host.home / "large").unlink()
    (host.home / "small").unlink()
    emptied = await host.store(stored)
    assert emptied is not None
    await host.restore(emptied)
    assert contents(host.home) == {}


async def test_a_session_without_a_stored_home_keeps_the_one_of_its_host(a: HomeHost) -> None:
    (a.home / "file").write_text("1")
    await a.restore(None)
    assert (a.home / "file").exists()


async def test_a_fork_starts_with_the_home_of_its_parent(a: HomeHost, b: HomeHost) -> None:
    (a.home / "file").write_text("1")
    stored = await a.store(None)
    await b.restore(stored, "sesn_2", "sesn_1")
    assert (b.home / "file").read_text() == "1"
