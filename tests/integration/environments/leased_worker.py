"""A worker process with one leased turn that ignores signals, optionally with a death watch. The tests kill it."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.integration.environments.conftest import UID, sandbox_view, sandboxed_user

from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.leases import Lease
from footplate.environments.reaper.death_watch import DeathWatch
from footplate.environments.sandbox.environment import SandboxEnvironment
from footplate.environments.sandbox.probe import probe_sandbox
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.lease_clock import lease_clock


async def main(data: Path, backend: str, lease: float, watched: str, mark: str, command: str) -> None:
    tree, state = data / "tree", data / "state"
    tree.mkdir()
    held_lease = Lease.in_data_directory(data, "default", "sesn_1", "turn_1")
    env, deadline = {"FOOTPLATE_TEST_MARK": mark}, lease_clock() + lease
    groups: Sequence[Path] = ()
    environment: BaseEnvironment
    if backend == "sandbox":
        host = (await probe_sandbox(UID)).host
        groups = host.cgroups.paths if host.cgroups else ()
        view = sandbox_view(tree, state)
        environment = SandboxEnvironment(
            view, host, user=sandboxed_user(), deadline=deadline, env=env, lease=held_lease
        )
    else:
        namespaces = backend != "descendants"
        environment = UnsandboxedEnvironment(
            str(tree), deadline=deadline, env=env, namespaces=namespaces, lease=held_lease
        )
    if watched == "watched":
        DeathWatch(data, groups).ensure_running()
    await environment.shell("true", timeout=10)
    guardian = environment._guardian
    assert guardian is not None
    print(guardian.pid, flush=True)  # noqa: T201 - the test reads it
    await environment.shell(command, timeout=600)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4], sys.argv[5], sys.argv[6]))
