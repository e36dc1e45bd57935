"""Kills the command line during a turn and checks that the turn runs on, once, and that `attach` shows all of it."""

import asyncio
import json
import random
import secrets
from collections.abc import Sequence
from typing import Final

from bench.prove.figure import require
from bench.support.clients import Client, Event
from bench.support.terminal.cli_user import CliUser
from bench.support.terminal.model_scripts import LONG
from footplate.stack.orphan_processes import wait_until

_TURN_SECONDS: Final = 3.0
"""About as long as the scripted turn takes."""
_CONCURRENT_RUNS: Final = 4


async def check_kills(user: CliUser, client: Client, *, times: int) -> str:
    """Kills the command line `times` times. Raises `NotHeld` unless each turn ended like an undisturbed one."""
    undisturbed = json.loads((await user.run("run", "--json", "[[script:long]]")).out)
    wanted = _shape(await client.events(undisturbed["session_id"]))
    limit = asyncio.Semaphore(_CONCURRENT_RUNS)

    async def one(number: int) -> bool:
        async with limit:
            # The kills are spread over the turn and slightly beyond it: some hit after the last text.
            return await _kill_once(user, client, _TURN_SECONDS * (number + random.random()) / times, wanted)

    running = await asyncio.gather(*(one(number) for number in range(times)))
    return f"{times} SIGKILLs of the command line, {sum(running)} during a turn: every turn continued and ran once"


async def _kill_once(user: CliUser, client: Client, wait: float, wanted: Sequence[str]) -> bool:
    title = secrets.token_hex(8)
    process = await user.spawn("run", "--title", title, "[[script:long]]")
    found: list[str] = []

    async def begun() -> bool:
        page = await client.sdk.beta.sessions.list(limit=20)
        found[:] = [session.id for session in page.data if session.title == title]
        return bool(found)

    require(holds=await wait_until(begun, 60), otherwise="the session did not start")
    await asyncio.sleep(wait)
    was_running = process.returncode is None
    if was_running:
        process.kill()
    await process.communicate()
    attached = await user.run("attach", found[0])
    result = json.loads((await user.run("attach", "--json", found[0])).out)
    shown = (attached.code, " ".join(attached.out.split()))
    require(holds=shown == (0, " ".join((LONG * 2).split())), otherwise=f"`attach` shows {attached}")
    ended = (result["status"], result["attempts"])
    require(holds=ended == ("completed", 1), otherwise=f"the turn ended as {result}")
    events = await client.events(found[0])
    require(holds=_shape(events) == wanted, otherwise=f"the log has {_shape(events)} instead of {wanted}")
    return was_running


def _shape(events: Sequence[Event]) -> list[str]:
    """Returns the event types in order, with the tool results, which show that the command ran once."""
    return [f"{event['type']} {event.get('content') if 'tool_result' in event['type'] else ''}" for event in events]
