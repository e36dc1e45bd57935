"""Kills the demo's worker once, in the middle of a command, and starts another one.

This shows new users how a session survives a crash. It is announced on screen and happens only in the demo.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import httpx2

from footplate.cli.stories import DISASTER_AT
from footplate.stack import Part
from footplate.stack.leftovers import wait_until

_INTO_THE_COMMAND: Final = 2.0
_LOOKS: Final = 0.5
_FOR_EVER: Final = float("inf")


async def death_of(worker: Part, model_address: str, model_key: str, say: Callable[[str], None]) -> int:
    """Waits for the worker to end and returns its exit code. Kills and restarts it once, when the scenario says so."""
    ended = asyncio.create_task(worker.wait())
    due = asyncio.create_task(_moment(f"http://{model_address}", model_key))
    try:
        await asyncio.wait({ended, due}, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            return ended.result()
    finally:
        due.cancel()
        ended.cancel()
    pid = worker.pid
    await worker.kill()
    say(f"\nDemo: {worker.title} (pid {pid}) was killed in the middle of a command (kill -9).")
    await worker.start()
    say(f"A new worker was started (pid {worker.pid}). The session continues once the lost worker times out.")
    return await worker.wait()


async def _moment(model: str, key: str) -> None:
    """Waits until the demo has started its slow command, and a little longer."""
    async with httpx2.AsyncClient(base_url=model, headers={"x-api-key": key}, trust_env=False) as client:

        async def slow_command() -> bool:
            await asyncio.sleep(_LOOKS)
            try:
                asked = (await client.get("/_control/requests", params={"bodies": "false"})).json()["data"]
            except (httpx2.HTTPError, ValueError, KeyError):
                return False
            return any(each["n"] == DISASTER_AT and each["outcome"] == "complete" for each in asked)

        await wait_until(slow_command, _FOR_EVER)
    await asyncio.sleep(_INTO_THE_COMMAND)
