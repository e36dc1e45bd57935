"""Measures a command in a turn's container against an exec of the same program by the same engine.

Both run alternately in a container that is already running; the engine's own exec is called through its API, without a
client program. The first command of a turn creates the container: its time is reported too, against a bare `run` of the
same image, without a limit.
"""

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any, Final

import aiodocker

from bench.prove.figure import require
from bench.support import environment_backends
from bench.support.escape.attacked_backends import DOCKER, LEASE, UID
from bench.support.escape.host_fixture import new_directory
from bench.support.speed.measurement import Measurement, median
from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.ports.engine import OpenEnvironment, OpenRequest
from footplate.environments.docker.engine_api import connect_engine
from footplate.environments.docker.factory import WorkerSettings
from footplate.environments.docker.image_inspection import ImageRecipe
from footplate.environments.docker.probe import DockerProbe, probe_docker
from footplate.lease_clock import lease_clock

MAX_RATIO: Final = 1.3
_PROGRAM: Final = ["/bin/true"]
_BARE: Final[dict[str, Any]] = {"Image": environment_backends.IMAGE, "HostConfig": {"NetworkMode": "none"}}


async def measure(rounds: int, *, slack: float = 1.0) -> Measurement:
    root = await asyncio.to_thread(new_directory, "footplate-exec-")
    try:
        async with environment_backends.docker_engine() as engine, connect_engine(engine) as docker:
            ground = WorkerSettings(root=root / "workspaces", backend=DOCKER, uid=UID)
            found = await probe_docker(
                engine, ground, Path(root, "docker"), image_or_container=ImageRecipe(image=environment_backends.IMAGE)
            )
            ours, bare = await _measure_commands(found, docker, rounds)
            first, run = await _measure_first_commands(found, docker, max(3, rounds // 10))
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    ratio, began = median(ours) / median(bare), median(first) / median(run)
    return Measurement(
        text=f"a command in a turn's container {median(ours) * 1000:.1f} ms, bare exec of the engine "
        f"{median(bare) * 1000:.1f}: {ratio:.2f} times (limit {MAX_RATIO}); the first command of a turn, "
        f"which creates the "
        f"container, {median(first) * 1000:.0f} ms, a bare run {median(run) * 1000:.0f}: {began:.2f} times",
        holds=ratio <= MAX_RATIO * slack,
        details={"docker_exec": round(ratio, 3), "docker_first": round(began, 3)},
    )


async def _measure_commands(
    found: DockerProbe, docker: aiodocker.Docker, rounds: int
) -> tuple[list[float], list[float]]:
    ours: list[float] = []
    bare: list[float] = []
    environment = await _open_environment(found, "commands")
    made = await docker.containers.create({**_BARE, "Cmd": ["sleep", "infinity"]})
    try:
        await made.start()
        await environment.run(_PROGRAM, timeout=60)
        for _ in range(rounds):
            ours.append(await _time_command(environment))
            began = time.monotonic()
            inside = await made.exec(_PROGRAM)
            # pyrefly: ignore[bad-context-manager]  # aiodocker annotates `__aexit__` without None
            async with inside.start(detach=False) as printed:
                while await printed.read_out() is not None:
                    pass
            bare.append(time.monotonic() - began)
            require(holds=(await inside.inspect())["ExitCode"] == 0, otherwise="a bare exec failed")
    finally:
        await environment.aclose()
        await made.delete(force=True)
    return ours, bare


async def _measure_first_commands(
    found: DockerProbe, docker: aiodocker.Docker, rounds: int
) -> tuple[list[float], list[float]]:
    ours: list[float] = []
    bare: list[float] = []
    for number in range(rounds):
        environment = await _open_environment(found, f"first-{number}")
        try:
            ours.append(await _time_command(environment))
        finally:
            await environment.aclose()
        began = time.monotonic()
        made = await docker.containers.create({**_BARE, "Cmd": _PROGRAM})
        await made.start()
        await made.wait()
        bare.append(time.monotonic() - began)
        await made.delete(force=True)
    return ours, bare


async def _open_environment(found: DockerProbe, session: str) -> OpenEnvironment:
    return await found.factory.open_environment(
        OpenRequest(
            organisation="org",
            session_id=session,
            deadline=lease_clock() + LEASE,
            variables={},
            config=EnvironmentConfig(),
        )
    )


async def _time_command(environment: OpenEnvironment) -> float:
    began = time.monotonic()
    result = await environment.run(_PROGRAM, timeout=60)
    require(holds=result.exit_code == 0, otherwise="a command in a container failed")
    return time.monotonic() - began
