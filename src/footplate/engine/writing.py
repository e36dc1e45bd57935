"""A turn that works in a directory which a user named has it for itself (C2): two would write the same files.

A session's own tree is nobody else's, and needs no leave. A turn that waits has not begun: nothing of it runs.
"""

import contextlib
import socket
from collections.abc import AsyncGenerator

from footplate.domain.leases import WriteLeases
from footplate.domain.running import Claim


@contextlib.asynccontextmanager
async def alone(leases: WriteLeases | None, claim: Claim) -> AsyncGenerator[None, None]:
    """`leases`: None, where no directory may be named. Raises `LeaseHeld` when another session's turn works there for
    longer than one waits.
    """
    directory = claim.context.get("directory")
    if leases is None or claim.config.projects or not isinstance(directory, str):
        yield
        return
    place = f"{socket.gethostname()}:{directory.rstrip('/')}"
    who = f"a turn of session {claim.session_id}"
    # An earlier attempt of the session's is dead by now: the claim has seen to it.
    async with leases.held(claim.organisation, place, who=who, named=f"the directory {directory}", successor=True):
        yield
