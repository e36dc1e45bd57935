"""The session log decides which directories of sessions are removed. Without its response, none is."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from footplate.domain.errors import Unavailable
from footplate.domain.snapshots import SCRATCH, KeptSnapshot, RestingFiles, Snapshot
from footplate.environments.reaper import patrol
from footplate.environments.reaper.workspaces import Workspaces

pytestmark = pytest.mark.timing

WEEK = timedelta(days=7)
SNAPSHOT = KeptSnapshot(0, Snapshot("a" * 40))


class MemoryLog:
    def __init__(self, *sessions: str, name: str = "one") -> None:
        self.sessions = set(sessions)
        self.notes: list[tuple[str, str]] = []
        self.name = name
        self.answers = True
        self.files: dict[str, RestingFiles] = {}
        """The files of the expired sessions."""

    async def cell(self) -> str:
        return self.name

    async def existing(self, session_ids: Sequence[str]) -> Collection[str]:
        if not self.answers:
            raise Unavailable("The database does not answer.")
        return self.sessions & set(session_ids)

    async def deleted(self) -> Sequence[tuple[str, str]]:
        return self.notes

    async def expired(self, session_ids: Sequence[str], older_than: timedelta) -> Collection[str]:
        assert older_than == WEEK
        return {session_id for session_id in session_ids if self.files.get(session_id) is not None}

    @asynccontextmanager
    async def resting(self, session_id: str, older_than: timedelta) -> AsyncIterator[RestingFiles | None]:
        assert older_than == WEEK
        yield self.touched(session_id)

    def touched(self, session_id: str) -> RestingFiles | None:
        """Replaced by a test to simulate a turn that began meanwhile."""
        return self.files.get(session_id)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("sesn_kept", "sesn_kept.state", "sesn_gone", "sesn_gone.state", "not-ours"):
        (tmp_path / "workspaces" / "default" / name / "deep").mkdir(parents=True)
    return tmp_path


def names(data: Path) -> list[str]:
    return sorted(entry.name for entry in (data / "workspaces" / "default").iterdir())


KEPT = ["not-ours", "sesn_kept", "sesn_kept.state"]
ALL = ["not-ours", "sesn_gone", "sesn_gone.state", "sesn_kept", "sesn_kept.state"]


async def test_only_what_the_log_does_not_know_goes(data: Path) -> None:
    workspaces = Workspaces(data, MemoryLog("sesn_kept"))
    assert await workspaces.unknown(()) == []  # the directory's cell is not known yet
    assert await workspaces.all(()) == 1
    assert names(data) == KEPT


async def test_without_the_log_s_word_nothing_goes(data: Path) -> None:
    log = MemoryLog()
    log.answers = False
    with pytest.raises(Unavailable):
        await Workspaces(data, log).all(())
    assert names(data) == ALL


async def test_another_cell_s_log_says_nothing_of_this_directory(data: Path) -> None:
    await Workspaces(data, MemoryLog("sesn_kept", "sesn_gone", name="one")).all(())
    assert await Workspaces(data, MemoryLog(name="two")).all(()) == 0
    assert names(data) == ALL


async def test_a_log_that_knows_none_of_them_is_another_s(data: Path) -> None:
    """The first start of this version with the wrong database must not delete any files."""
    assert await Workspaces(data, MemoryLog(name="wrong")).all(()) == 0
    assert names(data) == ALL
    assert await Workspaces(data, MemoryLog("sesn_kept", name="right")).all(()) == 1
    assert names(data) == KEPT


async def test_a_session_with_a_living_turn_waits(data: Path) -> None:
    log = MemoryLog("sesn_kept")
    log.notes = [("default", "sesn_gone"), ("default", "sesn_elsewhere")]
    workspaces = Workspaces(data, log)
    assert await workspaces.all({"sesn_gone"}) == 0
    assert await workspaces.noted({"sesn_gone"}) == 0
    assert names(data) == ALL
    assert await workspaces.noted(()) == 1
    assert names(data) == KEPT


async def test_there_may_be_no_session_yet(tmp_path: Path) -> None:
    assert await Workspaces(tmp_path, MemoryLog()).all(()) == 0


@pytest.mark.parametrize(
    ("files", "goes"),
    [
        (RestingFiles({SCRATCH: SNAPSHOT}), True),
        (RestingFiles({SCRATCH: None}), False),  # there are files, but no stored snapshot
        (RestingFiles({"proj_1": None}), True),  # unchanged since its base commit
        (RestingFiles({"proj_1": SNAPSHOT, "proj_2": replace(SNAPSHOT, left_out=("big: too large",))}), False),
    ],
)
async def test_what_has_expired_is_released_if_the_store_has_it(data: Path, files: RestingFiles, goes: bool) -> None:  # noqa: FBT001 - a case
    log = MemoryLog("sesn_kept", "sesn_gone")
    log.files = {"sesn_gone": files}
    private = data / "trees" / "default" / "sesn_gone"
    private.mkdir(parents=True)
    unplaced: list[str] = []
    workspaces = Workspaces(
        data, log, mark_for_rebuild=lambda _, session_id: unplaced.append(session_id), released_after=WEEK
    )
    assert await workspaces.release(()) == 0  # the directory's cell is not known yet
    await workspaces.all(())
    assert await workspaces.release({"sesn_gone"}) == 0
    assert names(data) == ALL
    assert await workspaces.release(()) == goes
    assert names(data) == (KEPT if goes else ALL)
    assert private.exists() is not goes
    assert unplaced == (["sesn_gone"] if goes else [])


async def test_one_that_was_touched_meanwhile_stays(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog("sesn_kept", "sesn_gone")
    log.files = {"sesn_gone": RestingFiles({SCRATCH: SNAPSHOT})}
    monkeypatch.setattr(log, "touched", lambda _: None)
    workspaces = Workspaces(data, log, released_after=WEEK)
    await workspaces.all(())
    assert await workspaces.release(()) == 0
    assert names(data) == ALL


async def test_what_a_killed_worker_had_set_aside_goes_the_next_time(data: Path) -> None:
    aside = data / "workspaces" / "default" / ".released.sesn_gone.1"
    aside.mkdir()
    workspaces = Workspaces(data, MemoryLog("sesn_kept", "sesn_gone"), released_after=WEEK)
    await workspaces.all(())
    assert await workspaces.release(()) == 0
    assert names(data) == ALL


async def test_a_worker_goes_on_until_the_log_answers(
    data: Path, monkeypatch: pytest.MonkeyPatch, until: Callable[..., Awaitable[float]]
) -> None:
    monkeypatch.setattr(patrol, "_EVERY", 0.01)
    log = MemoryLog("sesn_kept")
    log.answers = False
    swept: list[int] = []

    async def sweep() -> int:
        swept.append(1)
        return 0

    async with patrol.Patrol(data, [], Workspaces(data, log), [sweep]).running():
        await until(lambda: len(swept) > 3)
        assert names(data) == ALL
        log.answers = True
        await until(lambda: names(data) == KEPT)


async def test_a_long_removal_holds_up_nobody(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Callable[..., Awaitable[float]]
) -> None:
    monkeypatch.setattr(patrol, "_EVERY", 0.01)
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

    workspaces = Workspaces(data, MemoryLog("sesn_kept", "sesn_gone"), released_after=WEEK)
    async with patrol.Patrol(data, [], workspaces, [sweep]).running():
        await until(began.exists)
        before = len(swept)
        await until(lambda: len(swept) > before + 3)
    with pytest.raises(ProcessLookupError):  # a worker that stops does not wait for the removal either
        os.kill(int(began.read_text()), 0)
    assert aside.exists()
