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
from tests.integration.environments.conftest import ALL_BACKENDS
from tests.integration.environments.test_guardian_deaths import UNRULY_SCRIPT, Until, all_sleeps_run

import footplate
from footplate.environments import leases
from footplate.environments.directory_removal import remove_directory
from footplate.environments.leases import EXPIRY_MARGIN, MAX_FOREIGN_AGE, Lease, LeaseRecord, PidScope, is_over
from footplate.environments.processes import process_identity
from footplate.environments.processes.process_identity import NO_PROCESS, ProcessIdentity
from footplate.environments.reaper.expired_lease_reaper import Reaper, new_trial_name
from footplate.environments.sandbox.probe import SandboxProbe
from footplate.lease_clock import lease_clock

if TYPE_CHECKING:
    from tests.integration.environments.conftest import ProcessMark

pytestmark = pytest.mark.timing

_PYTHONPATH: Final = (Path(footplate.__file__).parents[1], Path(__file__).parents[3])
THIS_MACHINE: Final = PidScope("host", "boot", "pids")
WORKER, GUARDIAN = ProcessIdentity(10, 1), ProcessIdentity(11, 2)
RECORD: Final = LeaseRecord(
    place=THIS_MACHINE, worker=WORKER, guardian=GUARDIAN, organisation="o", session="s", turn="t", deadline=100.0
)


class LeasedWorker:
    def __init__(self, data: Path, mark: ProcessMark, backend: str, *, lease: float, watched: bool) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, str(Path(__file__).with_name("leased_worker.py")), str(data), backend, str(lease)),
                *("watched" if watched else "alone", mark.value, UNRULY_SCRIPT),
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
    tmp_path: Path, mark: ProcessMark, backend: str, sandbox_host: SandboxProbe | None, until: Until
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
    await until(lambda: not mark.find_processes())
    Reaper(tmp_path).reap()


def list_leases(data: Path) -> list[str]:
    """Returns the names of the remaining lease directories."""
    return [entry.name for entry in (data / leases.LEASES_DIRECTORY).iterdir()]


def read_control_groups(data: Path) -> list[Path]:
    (directory,) = (data / leases.LEASES_DIRECTORY).iterdir()
    record = LeaseRecord.read(directory)
    assert record is not None
    return [Path(group) for group in record.groups]


def find_guardian_processes(worker: LeasedWorker) -> list[psutil.Process]:
    """Returns the guardian, its watcher and its init process, found by the command line that they share."""
    return [process for process in worker.tree() if "guardian_main" in " ".join(process.cmdline())]


@ALL_BACKENDS
async def test_the_death_watch_of_a_killed_worker_removes_everything(
    start_worker: StartWorker, tmp_path: Path, mark: ProcessMark, until: Until
) -> None:
    worker = start_worker(watched=True)
    await until(all_sleeps_run(mark))
    tree, groups = worker.tree(), read_control_groups(tmp_path)
    worker.kill()
    await until(lambda: not list_leases(tmp_path) and not any(psutil.pid_exists(process.pid) for process in tree))
    assert not any(group.exists() for group in groups)


@ALL_BACKENDS
async def test_worker_and_guardian_killed_at_once(
    start_worker: StartWorker, tmp_path: Path, mark: ProcessMark, until: Until
) -> None:
    worker = start_worker(watched=True)
    await until(all_sleeps_run(mark))
    tree, groups = worker.tree(), read_control_groups(tmp_path)
    for process in [psutil.Process(worker.process.pid), *find_guardian_processes(worker)]:
        with contextlib.suppress(psutil.NoSuchProcess):  # it may have noticed already that the worker is gone
            process.kill()
    await until(lambda: not list_leases(tmp_path) and not mark.find_processes())
    assert not any(group.exists() for group in groups)
    assert tree


@ALL_BACKENDS
async def test_a_running_turn_is_not_reaped(
    start_worker: StartWorker, tmp_path: Path, mark: ProcessMark, until: Until
) -> None:
    start_worker()
    await until(all_sleeps_run(mark))
    before, groups = mark.list_command_lines(), read_control_groups(tmp_path)
    found = Reaper(tmp_path, [group.parent for group in groups]).reap()
    assert (len(found.living), found.has_leftovers, found.sessions) == (1, False, {"sesn_1"})
    assert mark.list_command_lines() == before
    assert all(group.exists() for group in groups)


@ALL_BACKENDS
async def test_a_turn_ends_when_its_lease_expires_while_its_worker_is_stopped(
    start_worker: StartWorker, tmp_path: Path, mark: ProcessMark, until: Until
) -> None:
    worker = start_worker(lease=2)
    groups = read_control_groups(tmp_path)
    worker.process.send_signal(signal.SIGSTOP)
    reaper = Reaper(tmp_path)
    await until(lambda: not list_leases(tmp_path) or not reaper.reap().living, limit=2 + EXPIRY_MARGIN + 20)
    assert not mark.find_processes()
    assert not any(group.exists() for group in groups)


def test_processes_with_the_id_of_an_expired_lease_are_ended(tmp_path: Path) -> None:
    lease = Lease.in_data_directory(tmp_path, "o", "s", "t")
    lease.begin(lease_clock() - 2 * EXPIRY_MARGIN)
    by_variable = subprocess.Popen(["sleep", "3010"], env={**os.environ, process_identity.LEASE_VARIABLE: lease.id})
    by_name = subprocess.Popen(["bash", "-c", "read", lease.id], stdin=subprocess.PIPE)
    other = subprocess.Popen(["sleep", "3012"], env={**os.environ, process_identity.LEASE_VARIABLE: "another"})
    try:
        found = Reaper(tmp_path).find_leftovers()
        assert (found.processes, list_leases(tmp_path)) == (2, [lease.id])
        assert Reaper(tmp_path).reap().processes == 2
        assert (by_variable.wait(), by_name.wait(), other.poll()) == (-9, -9, None)
        Reaper(tmp_path).reap()  # on a busy machine, the directory is removed only at the second pass
        assert list_leases(tmp_path) == []
    finally:
        for process in (by_variable, by_name, other):
            process.kill()
            process.communicate()


def test_leases_of_an_earlier_boot_are_removed(tmp_path: Path) -> None:
    lease = Lease.in_data_directory(tmp_path, "o", "s", "t")
    lease.begin(lease_clock() + 1000)
    record = LeaseRecord.read(lease.directory)
    assert record is not None
    replace(record, place=replace(record.place, boot="the last one")).write(lease.directory)
    assert Reaper(tmp_path).reap().over == [lease.id]
    assert list_leases(tmp_path) == []


def test_a_new_directory_without_a_record_stays_and_an_old_one_is_removed(tmp_path: Path) -> None:
    new, old = (tmp_path / leases.LEASES_DIRECTORY / f"1-1-{name}" for name in ("new", "old"))
    new.mkdir(parents=True)
    old.mkdir()
    os.utime(old, (time.time() - 3600,) * 2)
    assert Reaper(tmp_path).reap().over == [old.name]
    assert list_leases(tmp_path) == [new.name]


def test_a_trial_directory_is_removed_with_its_creator(tmp_path: Path) -> None:
    mine = tmp_path / new_trial_name()
    printed = subprocess.run(
        [
            sys.executable,
            "-c",
            "from footplate.environments.reaper.expired_lease_reaper import new_trial_name; print(new_trial_name())",
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    gone = tmp_path / printed.stdout.strip()
    mine.mkdir()
    gone.mkdir()
    assert Reaper(tmp_path, trials=tmp_path).reap().directories == 1
    assert (mine.exists(), gone.exists()) == (True, False)


def test_an_empty_group_is_removed_with_its_creator_but_not_in_another_pid_namespace(tmp_path: Path) -> None:
    """A pid of another container means nothing here, and a worker there may be about to use the group."""
    namespace, _, dead, *_ = leases.new_lease_id().split("-")
    mine, gone, foreign = (
        tmp_path / "groups" / name for name in (leases.new_lease_id(), f"{namespace}-1-{dead}-1", "f-1-2-1")
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
        ({WORKER, GUARDIAN}, 100 + EXPIRY_MARGIN, False),
        ({WORKER, GUARDIAN}, 100.1 + EXPIRY_MARGIN, True),  # both are stopped
    ],
)
def test_when_a_lease_of_this_machine_is_over(alive: set[ProcessIdentity], now: float, over: bool) -> None:  # noqa: FBT001
    assert is_over(RECORD, THIS_MACHINE, now=now, age=0, alive=alive.__contains__) is over


@pytest.mark.parametrize(
    ("place", "now", "age", "over"),
    [
        (replace(THIS_MACHINE, pids="a container's"), 99, 0, False),
        (replace(THIS_MACHINE, pids="a container's"), 200, 0, True),
        (replace(THIS_MACHINE, boot="before"), 99, 0, True),
        (replace(THIS_MACHINE, boot="another's", host="another"), 200, 0, False),
        (replace(THIS_MACHINE, boot="another's", host="another"), 99, MAX_FOREIGN_AGE + 1, True),
    ],
)
def test_when_a_lease_of_another_machine_is_over(place: PidScope, now: float, age: float, over: bool) -> None:  # noqa: FBT001
    assert is_over(replace(RECORD, place=place), THIS_MACHINE, now=now, age=age, alive=lambda _: False) is over


def test_a_lease_is_read_as_it_was_written_and_renewed(tmp_path: Path) -> None:
    lease = Lease.in_data_directory(tmp_path, "o", "s", "t")
    lease.begin(1.0, [tmp_path / "cpu"])
    first = LeaseRecord.read(lease.directory)
    assert first is not None
    assert (first.worker, first.guardian, first.deadline) == (process_identity.current_process(), NO_PROCESS, 1.0)
    assert list(first.groups) == [str(tmp_path / "cpu" / lease.id)]
    lease.record_guardian(os.getppid(), 2.0)
    lease.renew(3.0)
    second = LeaseRecord.read(lease.directory)
    assert second is not None
    assert (second.guardian.pid, second.deadline) == (os.getppid(), 3.0)
    lease.end(clean=False)
    assert list_leases(tmp_path) == [lease.id]
    assert leases.creator_of(lease.id) == process_identity.current_process()
    (lease.directory / leases.LEASE_FILE).write_bytes(b"torn by a power failure")
    assert LeaseRecord.read(lease.directory) is None


def test_a_deep_and_protected_directory_is_removed(tmp_path: Path) -> None:
    top, outside = tmp_path / "tree", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    top.mkdir()
    (top / "link").symlink_to(outside)
    (top / "closed").mkdir()
    (top / "closed" / "file").touch()
    (top / "closed").chmod(0)
    current = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=current)
        child = os.open("d", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = child
    os.close(current)
    assert remove_directory(top)
    assert not top.exists()
    assert (outside / "kept").exists()
    assert remove_directory(top)
