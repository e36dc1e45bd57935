"""The reaper removes the processes, groups and directories of dead turns and keeps those of living ones."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil
import pytest
from tests.integration.environments.conftest import EVERY_WAY
from tests.integration.environments.test_guardian_deaths import UNRULY, Until, unruly

import footplate
from footplate.environments.guardian import clock
from footplate.environments.reaper import leases, processes
from footplate.environments.reaper.leases import FOREIGN_AGE, MARGIN, Lease, Place, Record, is_over
from footplate.environments.reaper.processes import NOBODY, Process
from footplate.environments.reaper.reaping import Reaper, trial_name
from footplate.environments.removal import remove
from footplate.environments.sandbox.probe import Found

if TYPE_CHECKING:
    from tests.integration.environments.conftest import Mark

pytestmark = pytest.mark.timing

_PYTHONPATH: Final = (Path(footplate.__file__).parents[1], Path(__file__).parents[3])
HERE: Final = Place("host", "boot", "pids")
WORKER, GUARDIAN = Process(10, 1), Process(11, 2)
RECORD: Final = Record(
    place=HERE, worker=WORKER, guardian=GUARDIAN, organisation="o", session="s", turn="t", deadline=100.0
)


class LeasedWorker:
    def __init__(self, data: Path, mark: Mark, backend: str, *, lease: float, watched: bool) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, str(Path(__file__).with_name("leased_worker.py")), str(data), backend, str(lease)),
                *("watched" if watched else "alone", mark.value, UNRULY),
            ],
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": os.pathsep.join(map(str, _PYTHONPATH)), "PATH": os.environ["PATH"]},
            text=True,
        )
        assert self.process.stdout is not None
        self.guardian = int(self.process.stdout.readline())

    def tree(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


StartWorker = Callable[..., LeasedWorker]


@pytest.fixture
async def start_worker(
    tmp_path: Path, mark: Mark, backend: str, sandbox_host: Found | None, until: Until
) -> AsyncIterator[StartWorker]:
    if backend == "sandbox" and sandbox_host is None:
        pytest.skip("no sandbox can be made on this machine")
    started: list[LeasedWorker] = []

    def start(*, lease: float = 60, watched: bool = False) -> LeasedWorker:
        started.append(LeasedWorker(tmp_path, mark, backend, lease=lease, watched=watched))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()
        assert worker.process.stdout is not None
        worker.process.stdout.close()
    await until(lambda: not mark.processes())
    Reaper(tmp_path).reap()


def left(data: Path) -> list[str]:
    """Returns the names of the remaining lease directories."""
    return [entry.name for entry in (data / leases.DIRECTORY).iterdir()]


def groups_of(data: Path) -> list[Path]:
    (directory,) = (data / leases.DIRECTORY).iterdir()
    record = Record.read(directory)
    assert record is not None
    return [Path(group) for group in record.groups]


def everybody_of(worker: LeasedWorker) -> list[psutil.Process]:
    """Returns the guardian, its watcher and its init process, found by the command line that they share."""
    return [process for process in worker.tree() if "guardian_main" in " ".join(process.cmdline())]


@EVERY_WAY
async def test_a_killed_worker_s_last_watch_leaves_nothing(
    start_worker: StartWorker, tmp_path: Path, mark: Mark, until: Until
) -> None:
    worker = start_worker(watched=True)
    await until(unruly(mark))
    tree, groups = worker.tree(), groups_of(tmp_path)
    worker.kill()
    await until(lambda: not left(tmp_path) and not any(psutil.pid_exists(process.pid) for process in tree))
    assert not any(group.exists() for group in groups)


@EVERY_WAY
async def test_worker_and_guardian_killed_at_once(
    start_worker: StartWorker, tmp_path: Path, mark: Mark, until: Until
) -> None:
    worker = start_worker(watched=True)
    await until(unruly(mark))
    tree, groups = worker.tree(), groups_of(tmp_path)
    for process in [psutil.Process(worker.process.pid), *everybody_of(worker)]:
        with contextlib.suppress(psutil.NoSuchProcess):  # it may have noticed already that the worker is gone
            process.kill()
    await until(lambda: not left(tmp_path) and not mark.processes())
    assert not any(group.exists() for group in groups)
    assert tree


@EVERY_WAY
async def test_a_living_turn_is_nobody_else_s_to_reap(
    start_worker: StartWorker, tmp_path: Path, mark: Mark, until: Until
) -> None:
    start_worker()
    await until(unruly(mark))
    before, groups = mark.command_lines(), groups_of(tmp_path)
    found = Reaper(tmp_path, [group.parent for group in groups]).reap()
    assert (len(found.living), found.anything, found.sessions) == (1, False, {"sesn_1"})
    assert mark.command_lines() == before
    assert all(group.exists() for group in groups)


@EVERY_WAY
async def test_a_turn_whose_lease_ran_out_while_its_worker_was_stopped(
    start_worker: StartWorker, tmp_path: Path, mark: Mark, until: Until
) -> None:
    worker = start_worker(lease=2)
    groups = groups_of(tmp_path)
    worker.process.send_signal(signal.SIGSTOP)
    reaper = Reaper(tmp_path)
    await until(lambda: not left(tmp_path) or not reaper.reap().living, limit=2 + MARGIN + 20)
    assert not mark.processes()
    assert not any(group.exists() for group in groups)


def test_what_carries_the_id_of_a_lease_that_is_over_is_ended(tmp_path: Path) -> None:
    lease = Lease.in_data(tmp_path, "o", "s", "t")
    lease.begin(clock() - 2 * MARGIN)
    by_variable = subprocess.Popen(["sleep", "3010"], env={**os.environ, processes.VARIABLE: lease.id})
    by_name = subprocess.Popen(["bash", "-c", "read", lease.id], stdin=subprocess.PIPE)
    other = subprocess.Popen(["sleep", "3012"], env={**os.environ, processes.VARIABLE: "another"})
    try:
        looked = Reaper(tmp_path).look()
        assert (looked.processes, left(tmp_path)) == (2, [lease.id])
        assert Reaper(tmp_path).reap().processes == 2
        assert (by_variable.wait(), by_name.wait(), other.poll()) == (-9, -9, None)
        Reaper(tmp_path).reap()  # on a busy machine, the directory is removed only at the second pass
        assert left(tmp_path) == []
    finally:
        for process in (by_variable, by_name, other):
            process.kill()
            process.communicate()


def test_what_the_machine_s_last_boot_left_goes(tmp_path: Path) -> None:
    lease = Lease.in_data(tmp_path, "o", "s", "t")
    lease.begin(clock() + 1000)
    record = Record.read(lease.directory)
    assert record is not None
    replace(record, place=replace(record.place, boot="the last one")).write(lease.directory)
    assert Reaper(tmp_path).reap().over == [lease.id]
    assert left(tmp_path) == []


def test_a_directory_that_is_just_being_made_stays_and_an_old_one_goes(tmp_path: Path) -> None:
    new, old = (tmp_path / leases.DIRECTORY / f"1-1-{name}" for name in ("new", "old"))
    new.mkdir(parents=True)
    old.mkdir()
    os.utime(old, (time.time() - 3600,) * 2)
    assert Reaper(tmp_path).reap().over == [old.name]
    assert left(tmp_path) == [new.name]


def test_a_trial_directory_goes_with_its_maker(tmp_path: Path) -> None:
    mine = tmp_path / trial_name()
    made = subprocess.run(
        [sys.executable, "-c", "from footplate.environments.reaper.reaping import trial_name; print(trial_name())"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    gone = tmp_path / made.stdout.strip()
    mine.mkdir()
    gone.mkdir()
    assert Reaper(tmp_path, trials=tmp_path).reap().directories == 1
    assert (mine.exists(), gone.exists()) == (True, False)


def test_an_empty_group_goes_with_its_maker_and_one_of_another_pid_namespace_stays(tmp_path: Path) -> None:
    """A pid of another container means nothing here, and a worker there may be about to use the group."""
    namespace, _, dead, *_ = leases.new_id().split("-")
    mine, gone, foreign = (
        tmp_path / "groups" / name for name in (leases.new_id(), f"{namespace}-1-{dead}-1", "f-1-2-1")
    )
    for group in (mine, gone, foreign):
        group.mkdir(parents=True)
    assert Reaper(tmp_path, [tmp_path / "groups"], trials=tmp_path).reap().cgroups == 1
    assert (mine.exists(), gone.exists(), foreign.exists()) == (True, False, True)


@pytest.mark.parametrize(
    ("alive", "now", "over"),
    [
        ({WORKER, GUARDIAN}, 99, False),
        ({WORKER}, 99, False),  # the worker itself cleans up
        ({GUARDIAN}, 99, False),  # it is ending its tree
        (set(), 99, True),
        ({WORKER, GUARDIAN}, 100 + MARGIN, False),
        ({WORKER, GUARDIAN}, 100.1 + MARGIN, True),  # both are stopped
    ],
)
def test_a_lease_here(alive: set[Process], now: float, over: bool) -> None:  # noqa: FBT001
    assert is_over(RECORD, HERE, now=now, age=0, alive=alive.__contains__) is over


@pytest.mark.parametrize(
    ("place", "now", "age", "over"),
    [
        (replace(HERE, pids="a container's"), 99, 0, False),
        (replace(HERE, pids="a container's"), 200, 0, True),
        (replace(HERE, boot="before"), 99, 0, True),
        (replace(HERE, boot="another's", host="another"), 200, 0, False),
        (replace(HERE, boot="another's", host="another"), 99, FOREIGN_AGE + 1, True),
    ],
)
def test_a_lease_from_elsewhere(place: Place, now: float, age: float, over: bool) -> None:  # noqa: FBT001
    assert is_over(replace(RECORD, place=place), HERE, now=now, age=age, alive=lambda _: False) is over


def test_a_lease_is_read_as_it_was_written_and_renewed(tmp_path: Path) -> None:
    lease = Lease.in_data(tmp_path, "o", "s", "t")
    lease.begin(1.0, [tmp_path / "cpu"])
    first = Record.read(lease.directory)
    assert first is not None
    assert (first.worker, first.guardian, first.deadline) == (processes.itself(), NOBODY, 1.0)
    assert list(first.groups) == [str(tmp_path / "cpu" / lease.id)]
    lease.guard(os.getppid(), 2.0)
    lease.renew(3.0)
    second = Record.read(lease.directory)
    assert second is not None
    assert (second.guardian.pid, second.deadline) == (os.getppid(), 3.0)
    lease.end(clean=False)
    assert left(tmp_path) == [lease.id]
    assert leases.maker(lease.id) == processes.itself()
    (lease.directory / leases.FILE).write_bytes(b"torn by a power failure")
    assert Record.read(lease.directory) is None


def test_a_directory_as_an_agent_leaves_it_is_removed(tmp_path: Path) -> None:
    top, outside = tmp_path / "tree", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    top.mkdir()
    (top / "link").symlink_to(outside)
    (top / "closed").mkdir()
    (top / "closed" / "file").touch()
    (top / "closed").chmod(0)
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert remove(top)
    assert not top.exists()
    assert (outside / "kept").exists()
    assert remove(top)
