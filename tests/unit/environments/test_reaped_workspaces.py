"""Directories of sessions: the log decides which go, and without its word none does."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import pytest

from footplate.domain.errors import Unavailable
from footplate.environments.reaper import patrol
from footplate.environments.reaper.workspaces import Workspaces


class MemoryLog:
    def __init__(self, *sessions: str, name: str = "one") -> None:
        self.sessions = set(sessions)
        self.notes: list[tuple[str, str]] = []
        self.name = name
        self.answers = True

    async def cell(self) -> str:
        return self.name

    async def existing(self, session_ids: Sequence[str]) -> Collection[str]:
        if not self.answers:
            raise Unavailable("The database does not answer.")
        return self.sessions & set(session_ids)

    async def deleted(self) -> Sequence[tuple[str, str]]:
        return self.notes


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
    assert await workspaces.unknown(()) == []  # nobody has said yet whose the directory is
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
    """The first start of this version with the wrong database must not cost anybody their files."""
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
