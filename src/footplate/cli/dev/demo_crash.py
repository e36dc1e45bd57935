"""Kills the worker once while the demo scenario of `footplate dev` runs a shell command, and starts another worker.

This shows new users that a session survives a crash. `footplate dev` prints a message when it kills the worker. No
other scenario kills a worker.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import httpx2

from footplate.cli.dev.scenario_lookup import CRASH_REPLY
from footplate.stack import Service
from footplate.stack.orphan_processes import wait_until

_KILL_DELAY_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.5
_NO_TIMEOUT: Final = float("inf")


async def wait_and_kill_once(worker: Service, model_address: str, model_key: str, notify: Callable[[str], None]) -> int:
    """Waits for the worker to end and returns its exit code. Kills and restarts it once, when the scenario says so."""
    ended = asyncio.create_task(worker.wait())
    kill_due = asyncio.create_task(_wait_for_slow_command(f"http://{model_address}", model_key))
    try:
        await asyncio.wait({ended, kill_due}, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            return ended.result()
    finally:
        kill_due.cancel()
        ended.cancel()
    pid = worker.pid
    await worker.kill()
    notify(f"\nDemo: {worker.title} (pid {pid}) was killed in the middle of a command (kill -9).")
    await worker.start()
    notify(f"A new worker was started (pid {worker.pid}). The session continues once the lost worker times out.")
    return await worker.wait()


async def _wait_for_slow_command(base_url: str, key: str) -> None:
    """Waits until the demo has started its slow command, and a little longer."""
    async with httpx2.AsyncClient(base_url=base_url, headers={"x-api-key": key}, trust_env=False) as client:

        async def slow_command() -> bool:
            await asyncio.sleep(_POLL_SECONDS)
            try:
                requests = (await client.get("/_control/requests", params={"bodies": "false"})).json()["data"]
            except (httpx2.HTTPError, ValueError, KeyError):
                return False
            return any(each["n"] == CRASH_REPLY and each["outcome"] == "complete" for each in requests)

        await wait_until(slow_command, _NO_TIMEOUT)
    await asyncio.sleep(_KILL_DELAY_SECONDS)
