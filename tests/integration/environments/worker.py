"""A worker process with one command that ignores signals. The tests kill or stop it."""

import asyncio
import sys
import tempfile
from pathlib import Path

from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.docker.factory import ContainerFactory, WorkerSettings
from footplate.environments.docker.image_inspection import ImageRecipe
from footplate.environments.docker.probe import probe_docker as find_docker
from footplate.environments.sandbox.environment import SandboxEnvironment
from footplate.environments.sandbox.probe import probe_sandbox
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.lease_clock import lease_clock


async def open_environment(root: str, mark: str, lease: float, backend: str, engine: str) -> BaseEnvironment:
    env = {"FOOTPLATE_TEST_MARK": mark}
    if backend not in {"sandbox", "docker"}:
        return UnsandboxedEnvironment(
            root, deadline=lease_clock() + lease, env=env, namespaces=backend != "descendants"
        )
    from tests.integration.environments.conftest import FULL, UID, sandbox_view, sandboxed_user

    directory = Path(tempfile.mkdtemp(dir=Path(root).parent))
    view, user = sandbox_view(Path(root), directory), sandboxed_user()
    if backend == "sandbox":
        found = await probe_sandbox(UID)
        return SandboxEnvironment(view, found.host, user=user, deadline=lease_clock() + lease, env=env)
    worker_settings = WorkerSettings(root=directory / "workspaces", uid=UID, worker="worker_killed")
    containers = (
        await find_docker(engine, worker_settings, directory / "docker", image_or_container=ImageRecipe(image=FULL))
    ).factory
    assert isinstance(containers, ContainerFactory)
    return containers.create_environment(view, user, {}, deadline=lease_clock() + lease, env=env)


async def main(root: str, mark: str, lease: float, backend: str, command: str, engine: str) -> None:
    opened = await open_environment(root, mark, lease, backend, engine)
    await opened.shell("true", timeout=10)
    guardian = opened._guardian
    assert guardian is not None
    assert guardian.mode == ("descendants" if backend == "descendants" else "namespace"), guardian.mode
    print(guardian.pid, opened._deadline, flush=True)  # noqa: T201 - the test reads it
    await opened.shell(command, timeout=600)


asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), *sys.argv[4:7]))
