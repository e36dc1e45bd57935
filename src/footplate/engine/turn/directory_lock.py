"""Gives a turn exclusive access to a directory that the user specified. Working trees that belong to a session need no
lock.

A turn that waits for the directory has not started any command yet, so an interrupt only has to end the wait.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator

from footplate.domain.ports.engine import Claim
from footplate.domain.projects.write_leases import WriteLeases
from footplate.engine.turn.interrupts_and_steering import ControlInputs
from footplate.engine.worker_lease import HeldTurn


@contextlib.asynccontextmanager
async def exclusive_directory(
    leases: WriteLeases | None, claim: Claim, controls: ControlInputs, held: HeldTurn
) -> AsyncGenerator[bool, None]:
    """Hold the lease on the turn's directory inside the context. Yields False if the turn was interrupted while
    waiting.

    `leases` is None if sessions cannot name directories. Raises `LeaseHeld` if another session's turn holds the
    directory for too long, and `Fenced` if the turn was lost meanwhile.
    """
    directory = claim.context.get("directory")
    if leases is None or claim.config.projects or not isinstance(directory, str):
        yield True
        return
    target = f"{socket.gethostname()}:{directory.rstrip('/')}"
    owner = f"a turn of session {claim.session_id}"
    # An earlier attempt of this session is dead by now: the claim has waited for that.
    lease = leases.hold(
        claim.organisation, target, owner=owner, display_name=f"the directory {directory}", successor=True
    )
    async with contextlib.AsyncExitStack() as exits:
        waiting = asyncio.ensure_future(exits.enter_async_context(lease))
        stop = asyncio.ensure_future(controls.interrupt.wait())
        held.on_lost = waiting.cancel
        try:
            held.check()
            async with controls.watching(held):
                await asyncio.wait({waiting, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            waiting.cancel()  # does nothing if it is done
            await asyncio.wait({waiting})
        held.check()
        if not waiting.cancelled():
            waiting.result()
        yield not waiting.cancelled()
