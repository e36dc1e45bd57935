"""A worker with one command that nobody can end politely. Run by the tests, to be killed or stopped."""

import asyncio
import sys

from footplate.environments.guardian import clock
from footplate.environments.unsandboxed import UnsandboxedEnvironment


async def main(root: str, mark: str, lease: float, mode: str, command: str) -> None:
    environment = UnsandboxedEnvironment(
        root, deadline=clock() + lease, env={"FOOTPLATE_TEST_MARK": mark}, namespaces=mode == "namespace"
    )
    await environment.shell("true", timeout=10)
    guardian = environment._guardian
    assert guardian is not None
    assert guardian.mode == mode, guardian.mode
    print(guardian.pid, flush=True)  # noqa: T201 - the test reads it
    await environment.shell(command, timeout=600)


asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4], sys.argv[5]))
