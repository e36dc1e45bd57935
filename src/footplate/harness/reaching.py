"""Where a host name leads, held against what may be reached. For whatever a worker asks on an agent's behalf.

Between a check and a connection by name the name could change its address: who connects uses the addresses from here.
"""

import asyncio
import socket
from ipaddress import ip_address
from typing import Final

from footplate.domain.addresses import Address, Reach

PORTS: Final = {"http": 80, "https": 443}


class NoAddress(Exception):
    """The name leads nowhere."""


class Internal(Exception):
    """One of the addresses that the name leads to may not be reached."""


async def addresses(reach: Reach, host: str, port: int) -> list[Address]:
    """All of them, and none if one is refused."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        told = str(error).strip().rstrip(".") or type(error).__name__
        raise NoAddress(f"The host name {host!r} leads to no address: {told}.") from error
    leads_to = list(dict.fromkeys(ip_address(str(entry[4][0])) for entry in found))
    for address in leads_to:
        if not reach.permits(host, address):
            raise Internal(f"{host} is at {address}, which is not an address of the public internet")
    return leads_to
