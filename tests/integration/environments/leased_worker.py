"""A worker process with one leased turn that ignores signals, optionally with a death watch. The tests kill it."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.integration.environments.conftest import UID, sandbox_view, sandboxed_user

from footplate.environments.guarded import GuardedEnvironment
from footplate.environments.guardian import clock
from footplate.environments.reaper.last_watch import LastWatch
from footplate.environments.reaper.leases import Lease
from footplate.environments.sandbox.environment import SandboxEnvironment
from footplate.environments.sandbox.probe import find
from footplate.environments.unsandboxed import UnsandboxedEnvironment


async def main(data: Path, backend: str, lease: float, watched: str, mark: str, command: str) -> None:
    tree, state = data / "tree", data / "state"
    tree.mkdir()
    held = Lease.in_data(data, "default", "sesn_1", "turn_1")
    env, deadline = {"FOOTPLATE_TEST_MARK": mark}, clock() + lease
    groups: Sequence[Path] = ()
    opened: GuardedEnvironment
    if backend == "sandbox":
        host = (await find(UID)).host
        groups = host.cgroups.places if host.cgroups else ()
        view = sandbox_view(tree, state)
        opened = SandboxEnvironment(view, host, user=sandboxed_user(), deadline=deadline, env=env, lease=held)
    else:
        namespaces = backend != "descendants"
        opened = UnsandboxedEnvironment(str(tree), deadline=deadline, env=env, namespaces=namespaces, lease=held)
    if watched == "watched":
        LastWatch(data, groups).keep()
    await opened.shell("true", timeout=10)
    guardian = opened._guardian
    assert guardian is not None
    print(guardian.pid, flush=True)  # noqa: T201 - the test reads it
    await opened.shell(command, timeout=600)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4], sys.argv[5], sys.argv[6]))
