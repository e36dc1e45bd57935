"""Resolves a host name and checks its addresses against the address policy, before a worker connects for an agent.

Callers must connect to the returned addresses. If they connected by name, the name could resolve to another
address after the check.
"""

import socket
from typing import Final

from footplate.domain.network.address_policy import Address, AddressPolicy
from footplate.domain.network.dns_lookup import NameLookup

PORTS: Final = {"http": 80, "https": 443}
_NAME_LOOKUP: Final = NameLookup(socket.getaddrinfo)


class UnresolvableHost(Exception):
    """The host name cannot be resolved."""


class ForbiddenAddress(Exception):
    """The policy forbids one of the host's addresses."""


async def resolve_allowed_addresses(policy: AddressPolicy, host: str, port: int) -> list[Address]:
    """All addresses of the host. Raises `ForbiddenAddress` if the policy forbids one of them."""
    try:
        resolved = await _NAME_LOOKUP.resolve(host, port)
    except (OSError, UnicodeError) as error:
        message = str(error).strip().rstrip(".") or type(error).__name__
        raise UnresolvableHost(f"The host name {host!r} cannot be resolved: {message}.") from error
    for address in resolved:
        if not policy.permits(host, address):
            raise ForbiddenAddress(f"{host} resolves to {address}, which is not a public internet address")
    return resolved
