"""The session log decides which directories of sessions are removed. Without its response, none is."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from footplate.domain.errors import Unavailable
from footplate.domain.files.snapshots import SCRATCH_TREE, ExpiredSessionFiles, Snapshot, StoredSnapshot
from footplate.environments.reaper import periodic_reaper
from footplate.environments.reaper.session_directory_reaper import WorkspaceReaper

pytestmark = pytest.mark.timing

WEEK = timedelta(days=7)
SNAPSHOT = StoredSnapshot(0, Snapshot("a" * 40))


class MemorySessionRegistry:
    def __init__(self, *sessions: str, name: str = "one") -> None:
        self.sessions = set(sessions)
        self.deletion_records: list[tuple[str, str]] = []
        self.name = name
        self.is_available = True
        self.files: dict[str, ExpiredSessionFiles] = {}
        """The files of the expired sessions."""

    async def cell(self) -> str:
        return self.name

    async def existing(self, session_ids: Sequence[str]) -> Collection[str]:
        if not self.is_available:
            raise Unavailable("The database does not answer.")
        return self.sessions & set(session_ids)

    async def deleted(self) -> Sequence[tuple[str, str]]:
        return self.deletion_records

    async def expired(self, session_ids: Sequence[str], older_than: timedelta) -> Collection[str]:
        assert older_than == WEEK
        return {session_id for session_id in session_ids if self.files.get(session_id) is not None}

    @asynccontextmanager
    async def resting(self, session_id: str, older_than: timedelta) -> AsyncIterator[ExpiredSessionFiles | None]:
        assert older_than == WEEK
        yield self.find_files(session_id)

    def find_files(self, session_id: str) -> ExpiredSessionFiles | None:
        """Replaced by a test to simulate a turn that began meanwhile."""
        return self.files.get(session_id)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("sesn_kept", "sesn_kept.state", "sesn_gone", "sesn_gone.state", "not-ours"):
        (tmp_path / "workspaces" / "default" / name / "deep").mkdir(parents=True)
    return tmp_path


def list_names(data: Path) -> list[str]:
    return sorted(entry.name for entry in (data / "workspaces" / "default").iterdir())


WITHOUT_REMOVED = ["not-ours", "sesn_kept", "sesn_kept.state"]
WITH_ALL = ["not-ours", "sesn_gone", "sesn_gone.state", "sesn_kept", "sesn_kept.state"]


async def test_only_directories_of_unknown_sessions_are_removed(data: Path) -> None:
    workspaces = WorkspaceReaper(data, MemorySessionRegistry("sesn_kept"))
    assert await workspaces.find_unknown(()) == []  # the directory's cell is not known yet
    assert await workspaces.remove_unknown(()) == 1
    assert list_names(data) == WITHOUT_REMOVED


async def test_nothing_is_removed_without_a_response_of_the_log(data: Path) -> None:
    log = MemorySessionRegistry()
    log.is_available = False
    with pytest.raises(Unavailable):
        await WorkspaceReaper(data, log).remove_unknown(())
    assert list_names(data) == WITH_ALL


async def test_the_log_of_another_cell_removes_nothing(data: Path) -> None:
    await WorkspaceReaper(data, MemorySessionRegistry("sesn_kept", "sesn_gone", name="one")).remove_unknown(())
    assert await WorkspaceReaper(data, MemorySessionRegistry(name="two")).remove_unknown(()) == 0
    assert list_names(data) == WITH_ALL


async def test_a_log_that_knows_none_of_the_sessions_removes_nothing(data: Path) -> None:
    """The first start of this version with the wrong database must not delete any files."""
    assert await WorkspaceReaper(data, MemorySessionRegistry(name="wrong")).remove_unknown(()) == 0
    assert list_names(data) == WITH_ALL
    assert await WorkspaceReaper(data, MemorySessionRegistry("sesn_kept", name="right")).remove_unknown(()) == 1
    assert list_names(data) == WITHOUT_REMOVED


async def test_the_directory_of_a_session_with_a_running_turn_stays(data: Path) -> None:
    log = MemorySessionRegistry("sesn_kept")
    log.deletion_records = [("default", "sesn_gone"), ("default", "sesn_elsewhere")]
    workspaces = WorkspaceReaper(data, log)
    assert await workspaces.remove_unknown({"sesn_gone"}) == 0
    assert await workspaces.remove_deleted({"sesn_gone"}) == 0
    assert list_names(data) == WITH_ALL
    assert await workspaces.remove_deleted(()) == 1
    assert list_names(data) == WITHOUT_REMOVED


async def test_a_data_directory_without_sessions(tmp_path: Path) -> None:
    assert await WorkspaceReaper(tmp_path, MemorySessionRegistry()).remove_unknown(()) == 0


@pytest.mark.parametrize(
    ("files", "goes"),
    [
        (ExpiredSessionFiles({SCRATCH_TREE: SNAPSHOT}), True),
        (ExpiredSessionFiles({SCRATCH_TREE: None}), False),  # there are files, but no stored snapshot
        (ExpiredSessionFiles({"proj_1": None}), True),  # unchanged since its base commit
        (ExpiredSessionFiles({"proj_1": SNAPSHOT, "proj_2": replace(SNAPSHOT, omitted=("big: too large",))}), False),
    ],
)
async def test_an_expired_session_is_removed_if_its_files_are_stored(
    data: Path,
    files: ExpiredSessionFiles,
    goes: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    log = MemorySessionRegistry("sesn_kept", "sesn_gone")
    log.files = {"sesn_gone": files}
    private = data / "trees" / "default" / "sesn_gone"
    private.mkdir(parents=True)
    unplaced: list[str] = []
    workspaces = WorkspaceReaper(
        data, log, mark_for_rebuild=lambda _, session_id: unplaced.append(session_id), released_after=WEEK
    )
    assert await workspaces.release_expired(()) == 0  # the directory's cell is not known yet
    await workspaces.remove_unknown(())
    assert await workspaces.release_expired({"sesn_gone"}) == 0
    assert list_names(data) == WITH_ALL
    assert await workspaces.release_expired(()) == goes
    assert list_names(data) == (WITHOUT_REMOVED if goes else WITH_ALL)
    assert private.exists() is not goes
    assert unplaced == (["sesn_gone"] if goes else [])


async def test_a_session_that_was_used_meanwhile_stays(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemorySessionRegistry("sesn_kept", "sesn_gone")
    log.files = {"sesn_gone": ExpiredSessionFiles({SCRATCH_TREE: SNAPSHOT})}
    monkeypatch.setattr(log, "find_files", lambda _: None)
    workspaces = WorkspaceReaper(data, log, released_after=WEEK)
    await workspaces.remove_unknown(())
    assert await workspaces.release_expired(()) == 0
    assert list_names(data) == WITH_ALL


async def test_a_directory_that_a_killed_worker_set_aside_is_removed(data: Path) -> None:
    aside = data / "workspaces" / "default" / ".released.sesn_gone.1"
    aside.mkdir()
    workspaces = WorkspaceReaper(data, MemorySessionRegistry("sesn_kept", "sesn_gone"), released_after=WEEK)
    await workspaces.remove_unknown(())
    assert await workspaces.release_expired(()) == 0
    assert list_names(data) == WITH_ALL


async def test_a_worker_retries_until_the_log_responds(
    data: Path, monkeypatch: pytest.MonkeyPatch, until: Callable[..., Awaitable[float]]
) -> None:
    monkeypatch.setattr(periodic_reaper, "_INTERVAL", 0.01)
    log = MemorySessionRegistry("sesn_kept")
    log.is_available = False
    swept: list[int] = []

    async def sweep() -> int:
        swept.append(1)
        return 0

    async with periodic_reaper.PeriodicReaper(data, [], WorkspaceReaper(data, log), [sweep]).run_in_background():
        await until(lambda: len(swept) > 3)
        assert list_names(data) == WITH_ALL
        log.is_available = True
        await until(lambda: list_names(data) == WITHOUT_REMOVED)


async def test_a_long_removal_does_not_block_other_work(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Callable[..., Awaitable[float]]
) -> None:
    monkeypatch.setattr(periodic_reaper, "_INTERVAL", 0.01)
    slow, began = tmp_path / "bin" / "rm", tmp_path / "began"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\necho $$ > {began}.new && mv {began}.new {began}\nwhile :; do sleep 0.05; done\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    aside = data / "workspaces" / "default" / ".released.sesn_gone.1"
    aside.mkdir()
    swept: list[int] = []

    async def sweep() -> int:
        swept.append(1)
        return 0

    workspaces = WorkspaceReaper(data, MemorySessionRegistry("sesn_kept", "sesn_gone"), released_after=WEEK)
    async with periodic_reaper.PeriodicReaper(data, [], workspaces, [sweep]).run_in_background():
        await until(began.exists)
        before = len(swept)
        await until(lambda: len(swept) > before + 3)
    with pytest.raises(ProcessLookupError):  # a worker that stops does not wait for the removal either
        os.kill(int(began.read_text()), 0)
    assert aside.exists()
