"""A turn that works in a directory which a user named has it for itself (C2): two would write the same files.

A session's own tree is nobody else's, and needs no leave. A turn that waits has not begun: nothing of it runs, and an
interrupt has nothing else to stop.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator

from footplate.domain.leases import WriteLeases
from footplate.domain.running import Claim
from footplate.engine.controls import Controls
from footplate.engine.leases import HeldTurn


@contextlib.asynccontextmanager
async def alone(
    leases: WriteLeases | None, claim: Claim, controls: Controls, held: HeldTurn
) -> AsyncGenerator[bool, None]:
    """`leases`: None, where no directory may be named. False if the turn was interrupted while it waited.

    Raises `LeaseHeld` when another session's turn works there for longer than one waits, and `Fenced` when the turn was
    lost meanwhile.
    """
    directory = claim.context.get("directory")
    if leases is None or claim.config.projects or not isinstance(directory, str):
        yield True
        return
    place = f"{socket.gethostname()}:{directory.rstrip('/')}"
    who = f"a turn of session {claim.session_id}"
    # An earlier attempt of the session's is dead by now: the claim has seen to it.
    lease = leases.held(claim.organisation, place, who=who, named=f"the directory {directory}", successor=True)
    async with contextlib.AsyncExitStack() as exits:
        waiting = asyncio.ensure_future(exits.enter_async_context(lease))
        stop = asyncio.ensure_future(controls.interrupt.wait())
        held.on_lost = waiting.cancel
        try:
            held.check()
            async with controls.heeded(held):
                await asyncio.wait({waiting, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            waiting.cancel()  # does nothing where it is over
            await asyncio.wait({waiting})
        held.check()
        if not waiting.cancelled():
            waiting.result()
        yield not waiting.cancelled()
