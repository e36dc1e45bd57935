"""Decides which IP addresses the server may connect to for an agent: public addresses, and those that the operator
allows.

Untrusted text may tell a model to fetch something that only this machine can reach. Examples are a database port, and
the credentials that clouds serve on a link-local address. The check applies to the address of the connection, because a
host name can resolve to any address.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_EXTRA_INTERNAL_NETWORKS: Final = (
    IPv4Network("168.63.129.16/32"),  # Azure's metadata service, on an address that looks public
    IPv4Network("192.0.0.0/24"),  # protocol assignments, with Oracle's metadata service
    IPv4Network("192.88.99.0/24"),  # 6to4 relays
    IPv6Network("2001::/23"),  # protocol assignments and Teredo, which embeds an IPv4 address
    IPv6Network("2002::/16"),  # 6to4, which embeds an IPv4 address
    IPv6Network("3fff::/20"),  # documentation
)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOW_32_BITS: Final = 0xFFFF_FFFF


class AddressPolicy:
    """Decides whether an address may be connected to. `allow` lists host names, addresses and networks."""

    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._hosts: set[str] = set()
        self._networks: list[IPv4Network | IPv6Network] = []
        for entry in allow:
            try:
                self._networks.append(ip_network(entry))
            except ValueError:
                self._hosts.add(_normalize_host(entry))

    def permits(self, host: str, address: Address) -> bool:
        """Whether a connection to `address`, which `host` resolves to, is allowed."""
        resolved = _translate_to_ipv4(address)
        return (
            _is_public(resolved)
            or _normalize_host(host) in self._hosts
            or any(resolved in network for network in self._networks)
        )


def _normalize_host(host: str) -> str:
    return host.lower().removesuffix(".")


def _translate_to_ipv4(address: Address) -> Address:
    """Return the IPv4 address that an address translator would connect to."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & _LOW_32_BITS)
    return address


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if any(address in network for network in _EXTRA_INTERNAL_NETWORKS):
        return False
    return isinstance(address, IPv4Address) or address in _GLOBAL_UNICAST
