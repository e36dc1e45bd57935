"""Resolves a host name and checks its addresses against the policy, for requests that a worker makes for an agent.

Callers must connect to the addresses returned here. If they connected by name, the name could resolve to another
address after the check.
"""

import socket
from typing import Final

from footplate.domain.addresses import Address, Reach
from footplate.domain.name_lookup import NameLookup

PORTS: Final = {"http": 80, "https": 443}
_NAMES: Final = NameLookup(socket.getaddrinfo)


class NoAddress(Exception):
    """The host name cannot be resolved."""


class Internal(Exception):
    """The policy forbids one of the host's addresses."""


async def addresses(reach: Reach, host: str, port: int) -> list[Address]:
    """All addresses of the host. Raises `ForbiddenAddress` if the policy forbids one of them."""
    try:
        leads_to = await _NAMES.find(host, port)
    except (OSError, UnicodeError) as error:
        told = str(error).strip().rstrip(".") or type(error).__name__
        raise NoAddress(f"The host name {host!r} cannot be resolved: {told}.") from error
    for address in leads_to:
        if not reach.permits(host, address):
            raise Internal(f"{host} resolves to {address}, which is not a public internet address")
    return leads_to
