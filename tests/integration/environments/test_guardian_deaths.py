"""All processes of a turn end in time when its worker, lease or guardian ends, in every backend."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil
import pytest
from tests.integration.environments.conftest import ALL_BACKENDS, ENGINE_PROBLEMS

import footplate
from footplate.domain.errors import Unavailable
from footplate.environments.docker.factory import ContainerFactory
from footplate.environments.sandbox.probe import SandboxProbe
from footplate.lease_clock import lease_clock

if TYPE_CHECKING:
    from tests.integration.environments.conftest import EnvironmentOpener, ProcessMark

pytestmark = pytest.mark.timing

_PYTHONPATH: Final = (Path(footplate.__file__).parents[1], Path(__file__).parents[3])
Until = Callable[..., Awaitable[float]]

# In order: a new session; nohup; a daemon by double fork; children and a foreground command that ignore signals.
UNRULY_SCRIPT: Final = """
setsid sleep 3001 &
nohup sleep 3002 >/dev/null 2>&1 &
(setsid bash -c '(sleep 3003 &)' &)
(trap '' TERM INT HUP; sleep 3004 &)
(setsid bash -c 'trap "" TERM INT HUP; sleep 3005 & wait' &)
trap '' TERM INT HUP; sleep 3006
"""
SLEEPS: Final = {f"sleep {number}" for number in range(3001, 3007)}


def all_sleeps_run(mark: ProcessMark) -> Callable[[], bool]:
    return lambda: mark.list_command_lines() >= SLEEPS


def is_gone(tree: list[psutil.Process]) -> bool:
    def alive(process: psutil.Process) -> bool:
        try:
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return not any(alive(process) for process in tree)


def list_names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


class Worker:
    def __init__(
        self, root: Path, mark: ProcessMark, *, lease: float, backend: str, engine: str = "", prefix: Sequence[str] = ()
    ) -> None:
        self.deadline = 0.0
        self.process = subprocess.Popen(
            [
                *prefix,
                sys.executable,
                str(Path(__file__).with_name("worker.py")),
                str(root),
                mark.value,
                str(lease),
                backend,
                UNRULY_SCRIPT,
                engine,
            ],
            env={"PYTHONPATH": os.pathsep.join(map(str, _PYTHONPATH)), "PATH": os.defpath},
            stdout=subprocess.PIPE,
        )

    def read_process_tree(self) -> list[psutil.Process]:
        """Returns the guardian and all its descendants, including the init process and the watcher."""
        assert self.process.stdout is not None
        pid, deadline = self.process.stdout.readline().split()
        self.deadline = float(deadline)
        guardian = psutil.Process(int(pid))
        return [guardian, *guardian.children(recursive=True)]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start_worker(
    tmp_path: Path, mark: ProcessMark, backend: str, sandbox_host: SandboxProbe | None, docker: ContainerFactory | None
) -> Iterator[Callable[[float], Worker]]:
    if backend == "sandbox" and sandbox_host is None:
        pytest.skip("no sandbox can be made on this machine")
    if backend == "docker" and docker is None:
        pytest.skip(f"no private dockerd: {ENGINE_PROBLEMS[0]}")
    engine = docker.engine if docker is not None else ""
    started: list[Worker] = []

    def start(lease: float) -> Worker:
        started.append(Worker(tmp_path, mark, lease=lease, backend=backend, engine=engine))
        return started[-1]

    yield start
    for worker in started:
        worker.end()


@ALL_BACKENDS
async def test_worker_killed(start_worker: Callable[[float], Worker], mark: ProcessMark, until: Until) -> None:
    worker = start_worker(60)
    tree = worker.read_process_tree()
    await until(all_sleeps_run(mark))
    worker.process.kill()
    await until(lambda: not mark.find_processes() and is_gone(tree))


@ALL_BACKENDS
async def test_worker_stopped(start_worker: Callable[[float], Worker], mark: ProcessMark, until: Until) -> None:
    worker = start_worker(8)
    tree = worker.read_process_tree()
    await until(all_sleeps_run(mark), limit=7)
    worker.process.send_signal(signal.SIGSTOP)
    assert all_sleeps_run(mark)(), "a stopped worker's commands go on as long as its lease"
    remaining_lease = worker.deadline - lease_clock()
    assert remaining_lease > 0
    await until(lambda: not mark.find_processes() and is_gone(tree), limit=remaining_lease + 10)
    assert worker.process.poll() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="without root, the tests above already take this path")
async def test_worker_without_privilege_killed(tmp_path: Path, mark: ProcessMark, until: Until) -> None:
    """A user namespace makes the pid namespace possible. The worker process asserts the mode."""
    worker = Worker(tmp_path, mark, lease=60, backend="unsandboxed", prefix=("setpriv", "--bounding-set=-sys_admin"))
    try:
        tree = worker.read_process_tree()
        await until(all_sleeps_run(mark))
        worker.process.kill()
        await until(lambda: not mark.find_processes() and is_gone(tree))
    finally:
        worker.end()


@ALL_BACKENDS
async def test_guardian_killed(open_environment: EnvironmentOpener, mark: ProcessMark, until: Until) -> None:
    environment = open_environment()
    command = asyncio.create_task(environment.shell(UNRULY_SCRIPT, timeout=600))
    await until(all_sleeps_run(mark))
    assert environment._guardian is not None
    os.kill(environment._guardian.pid, signal.SIGKILL)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(command, 15)
    await until(lambda: not mark.find_processes())
    with pytest.raises(Unavailable):
        await environment.run(["true"])


@pytest.mark.parametrize("backend", ["descendants"], indirect=True)
async def test_guardian_behind_its_watcher_killed(
    open_environment: EnvironmentOpener, mark: ProcessMark, until: Until
) -> None:
    environment = open_environment()
    command = asyncio.create_task(environment.shell(UNRULY_SCRIPT, timeout=600))
    await until(all_sleeps_run(mark))
    assert environment._guardian is not None
    (inner,) = psutil.Process(environment._guardian.pid).children()
    inner.kill()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(command, 15)
    await until(lambda: not mark.find_processes())


@ALL_BACKENDS
async def test_environment_closed(open_environment: EnvironmentOpener, mark: ProcessMark, until: Until) -> None:
    environment = open_environment()
    command = asyncio.create_task(environment.shell(UNRULY_SCRIPT, timeout=600))
    await until(all_sleeps_run(mark))
    await environment.aclose()
    assert mark.find_processes() == []
    with pytest.raises(Unavailable):
        await command


@ALL_BACKENDS
async def test_lease_not_renewed(open_environment: EnvironmentOpener, mark: ProcessMark, until: Until) -> None:
    environment = open_environment(lease=8)
    end = lease_clock() + 8
    command = asyncio.create_task(environment.shell(UNRULY_SCRIPT, timeout=600))
    await until(all_sleeps_run(mark), limit=7.9)
    with pytest.raises(Unavailable):
        await command
    assert end - 0.1 <= lease_clock()
    await until(lambda: not mark.find_processes(), limit=end + 10 - lease_clock())


@ALL_BACKENDS
async def test_no_command_continues_after_another_was_killed(
    open_environment: EnvironmentOpener,
    mark: ProcessMark,
    until: Until,
    tmp_path: Path,
) -> None:
    """If processes were killed one by one, a shell would run the line after the command that was killed first."""
    script = "for n in 1 2 3 4 5 6 7 8; do (sleep 3010; touch went-on) & done; sleep 3011 | cat; touch went-on"
    for _ in range(5):
        environment = open_environment()
        command = asyncio.create_task(environment.shell(script, timeout=600))
        await until(lambda: mark.list_command_lines() >= {"sleep 3010", "sleep 3011"})
        await environment.aclose()
        with pytest.raises(Unavailable):
            await command
        assert list_names(tmp_path) == []


async def test_lease_renewed(open_environment: EnvironmentOpener, mark: ProcessMark) -> None:
    environment = open_environment(lease=0.6)
    command = asyncio.create_task(environment.shell("sleep 1.2; echo done", timeout=10))
    while not command.done():
        environment.renew(lease_clock() + 0.6)
        await asyncio.sleep(0.1)
    assert (await command).stdout == b"done\n"


async def test_nothing_starts_after_the_lease(open_environment: EnvironmentOpener, tmp_path: Path) -> None:
    environment = open_environment(lease=-0.001)
    with pytest.raises(Unavailable):
        await environment.shell("touch ran", timeout=5)
    with pytest.raises(Unavailable):
        await environment.run(["touch", "ran"])
    with pytest.raises(Unavailable):
        await environment.write("ran", b"")
    assert list_names(tmp_path) == []
