"""Where a host name leads, held against what may be reached. For whatever a worker asks on an agent's behalf.

Between a check and a connection by name the name could change its address: who connects uses the addresses from here.
"""

import socket
from typing import Final

from footplate.domain.addresses import Address, Reach
from footplate.domain.name_lookup import NameLookup

PORTS: Final = {"http": 80, "https": 443}
_NAMES: Final = NameLookup(socket.getaddrinfo)


class NoAddress(Exception):
    """The name leads nowhere."""


class Internal(Exception):
    """One of the addresses that the name leads to may not be reached."""


async def addresses(reach: Reach, host: str, port: int) -> list[Address]:
    """All of them, and none if one is refused."""
    try:
        leads_to = await _NAMES.find(host, port)
    except (OSError, UnicodeError) as error:
        told = str(error).strip().rstrip(".") or type(error).__name__
        raise NoAddress(f"The host name {host!r} leads to no address: {told}.") from error
    for address in leads_to:
        if not reach.permits(host, address):
            raise Internal(f"{host} is at {address}, which is not an address of the public internet")
    return leads_to
