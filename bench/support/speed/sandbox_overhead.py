"""Measures how long a command takes in a turn's sandbox and in its persistent shell.

Two comparisons run alternately: a command in a turn's sandbox against bubblewrap with the same arguments, which is the
cost of a new sandbox per command; and a command in the persistent shell against `sh -c`. The first command of a turn
creates the sandbox: its time is reported too, without a limit.
"""

import asyncio
import fcntl
import os
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from bench.prove.figure import require
from bench.support.escape.attacked_backends import LEASE, SANDBOX, UID
from bench.support.escape.host_fixture import new_directory
from bench.support.speed.measurement import Measurement, median
from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.ports.engine import OpenRequest
from footplate.environments.factory import SandboxFactory
from footplate.environments.processes.command_runner import open_stdin
from footplate.environments.sandbox import probe
from footplate.environments.sandbox.environment import SandboxEnvironment
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy

_MAX_START_RATIO: Final = 1.6
_MAX_SHELL_RATIO: Final = 1.5


async def measure(rounds: int, *, slack: float = 1.0) -> Measurement:
    root = await asyncio.to_thread(new_directory, "footplate-start-")
    try:
        found = await probe.probe_sandbox(UID)
        sandboxed = SandboxFactory(root, SANDBOX, found.host, uid=UID)
        async with ModelProxy({}) as proxy:
            first, start, bare = await _measure_starts(sandboxed, proxy, rounds)
            shell, plain = await _measure_shells(sandboxed, proxy, rounds)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    started, ran = start / bare, shell / plain
    return Measurement(
        text=f"a command in a sandbox {start * 1000:.1f} ms, bare bubblewrap {bare * 1000:.1f}: {started:.2f} times "
        f"(limit {_MAX_START_RATIO}); the first command of a turn, which creates the sandbox, {first * 1000:.1f} ms: "
        f"{first / bare:.2f} times; a command in the persistent shell {shell * 1000:.2f} ms, sh -c "
        f"{plain * 1000:.2f}: {ran:.2f} times (limit {_MAX_SHELL_RATIO})",
        holds=started <= _MAX_START_RATIO * slack and ran <= _MAX_SHELL_RATIO * slack,
        details={"start": round(started, 3), "first": round(first / bare, 3), "shell": round(ran, 3)},
        figures={"ratio": started, "limit": _MAX_START_RATIO},
    )


async def _measure_starts(sandboxed: SandboxFactory, proxy: ModelProxy, rounds: int) -> tuple[float, float, float]:
    """Returns the median seconds of a turn's first command, of a later one, and of bubblewrap alone.

    The guardian, which every turn has anyway, is started before the first measurement.
    """
    first: list[float] = []
    ours: list[float] = []
    bare: list[float] = []
    for number in range(rounds):
        async with open_sandbox(sandboxed, proxy, f"start-{number}") as environment:
            async with environment._start_lock:
                environment._guardian = await environment._start_leased_guardian()
            began = time.monotonic()
            await environment.run(["true"], timeout=60)
            first.append(time.monotonic() - began)
            began = time.monotonic()
            await environment.run(["true"], timeout=60)
            ours.append(time.monotonic() - began)
            bare.append((await asyncio.to_thread(spawn_bare, environment, ["true"])).seconds)
    return median(first), median(ours), median(bare)


@dataclass(frozen=True, slots=True)
class Spawned:
    seconds: float
    cpu_seconds: float


def spawn_bare(environment: SandboxEnvironment, command: Sequence[str]) -> Spawned:
    """Runs the same bubblewrap command line, with `command` instead of our init process."""
    argv = list(environment._argv)
    argv = [*argv[: argv.index("--") + 1], *command]
    if environment._plan.staged:
        for number, source in enumerate(environment._plan.sources):
            argv = [source if part == f"/tmp/{number}" else part for part in argv]
    opened = [(number, open_stdin(content)) for number, content in environment._plan.data.items()]
    aside = [(number, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100)) for number, fd in opened]
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in aside]
    began = time.monotonic()
    child = os.posix_spawn(argv[0], argv, {"PATH": os.defpath}, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    took = time.monotonic() - began
    for _, fd in (*opened, *aside):
        os.close(fd)
    code = os.waitstatus_to_exitcode(status)
    require(holds=code == 0, otherwise=f"bare bubblewrap exited with {code}")
    return Spawned(took, usage.ru_utime + usage.ru_stime)


async def _measure_shells(sandboxed: SandboxFactory, proxy: ModelProxy, rounds: int) -> tuple[float, float]:
    ours: list[float] = []
    plain: list[float] = []
    async with open_sandbox(sandboxed, proxy, "shell") as environment:
        await environment.shell("true", timeout=60)
        for _ in range(rounds):
            began = time.monotonic()
            await environment.shell("/bin/true", timeout=60)
            ours.append(time.monotonic() - began)
            began = time.monotonic()
            process = await asyncio.create_subprocess_exec("sh", "-c", "/bin/true; exit 0")
            await process.wait()
            plain.append(time.monotonic() - began)
    return median(ours), median(plain)


@asynccontextmanager
async def open_sandbox(sandboxed: SandboxFactory, proxy: ModelProxy, session: str) -> AsyncIterator[SandboxEnvironment]:
    deadline = lease_clock() + LEASE
    models = proxy.grant(deadline=deadline)
    environment = await sandboxed.open_environment(
        OpenRequest(
            organisation="org",
            session_id=session,
            deadline=deadline,
            variables={},
            config=EnvironmentConfig(),
            models=models,
        )
    )
    assert isinstance(environment, SandboxEnvironment)
    try:
        yield environment
    finally:
        await environment.aclose()
        await models.aclose()
