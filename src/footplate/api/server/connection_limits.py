"""Counts open connections, in total and for each client address, and refuses connections over the limit."""

import resource
from collections import Counter
from ipaddress import IPv6Address, ip_address
from typing import Final

from footplate.api.errors import LimitExceeded
from footplate.domain.network.request_limits import RequestLimits

_OTHER_FILES: Final = 200
"""Open files that the process needs besides client connections: database, Redis, logs, spooled uploads."""
_NETWORK_BITS: Final = 64


class ConnectionSlots:
    def __init__(self, limits: RequestLimits) -> None:
        self._total_limit = min(limits.connections, max(1, _open_file_limit() - _OTHER_FILES))
        self._address_limit = limits.connections_per_address
        self._by_client: Counter[str] = Counter()
        self.used = 0

    def acquire(self, address: str | None) -> "ConnectionSlot":
        """Raises `LimitExceeded` when no slot is free. A client of a Unix socket has no address."""
        if self.used >= self._total_limit:
            raise LimitExceeded(429, "connections", f"The server already has {self._total_limit} open connections.")
        client = client_network(address) if address else ""
        if client and self._by_client[client] >= self._address_limit:
            raise LimitExceeded(
                429,
                "connections_per_address",
                f"{client} already has {self._address_limit} open connections to this server.",
            )
        self.used += 1
        self._by_client[client] += 1
        return ConnectionSlot(self, client)

    def release(self, client: str) -> None:
        self.used -= 1
        self._by_client[client] -= 1
        if not self._by_client[client]:
            del self._by_client[client]


class ConnectionSlot:
    def __init__(self, slots: ConnectionSlots, client: str) -> None:
        self._slots: ConnectionSlots | None = slots
        self._client = client

    def release(self) -> None:
        """Safe to call twice."""
        if self._slots is not None:
            self._slots.release(self._client)
            self._slots = None


def client_network(address: str) -> str:
    """Returns the address, or the /64 network of an IPv6 address, because a client usually controls all of it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    host_bits = 128 - _NETWORK_BITS
    return f"{IPv6Address(int(parsed) >> host_bits << host_bits)}/{_NETWORK_BITS}"


def _open_file_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft
