"""What commands may reach of the network: nothing, a list of hosts, or whatever the worker can. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Literal, TypeAlias

NetworkMode: TypeAlias = Literal["none", "allow", "open"]

USUAL_PORTS: Final = frozenset({80, 443})
ANY: Final = "*"
_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_WITH_PORT: Final = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]+):(?P<port>\d{1,5})")
_MOST: Final = 65_535


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """`example.com`, `*.example.com` (all below it), `*` (every name), each with a port or for 80 and 443."""

    name: str
    ports: frozenset[int] = USUAL_PORTS

    @classmethod
    def parse(cls, entry: str) -> "AllowedHost":
        """Raises ValueError that says how it is written."""
        found = _WITH_PORT.fullmatch(entry.strip())
        host, ports = (found["host"], frozenset({int(found["port"])})) if found else (entry.strip(), USUAL_PORTS)
        name = normal(host)
        below = name.removeprefix("*.")
        if not (name == ANY or _NAME.fullmatch(below) or is_address(name)) or not all(0 < p <= _MOST for p in ports):
            raise ValueError(
                f"{entry!r} is no host. Write a name, all names below one, or either with a port, as in: example.com, "
                "*.example.com, git.example.com:8443. No scheme, no path; names of other scripts in their xn-- form."
            )
        return cls(name, ports)

    def fits(self, name: str, port: int) -> bool:
        if port not in self.ports:
            return False
        if self.name == ANY:
            return not is_address(name)
        if self.name.startswith("*."):
            return name.endswith(self.name[1:]) and not is_address(name)
        return name == self.name

    def covers(self, other: "AllowedHost") -> bool:
        """Does it let through all that the other does?"""
        if not other.ports <= self.ports:
            return False
        if other.name == ANY or other.name.startswith("*."):
            return self.name == ANY or (self.name.startswith("*.") and other.name[1:].endswith(self.name[1:]))
        return all(self.fits(other.name, port) for port in other.ports)


@dataclass(frozen=True, slots=True)
class Network:
    mode: NetworkMode = "none"
    hosts: Sequence[AllowedHost] = field(default=())

    @classmethod
    def allow(cls, entries: Sequence[str]) -> "Network":
        """Raises ValueError for one that cannot be read."""
        return cls("allow", tuple(AllowedHost.parse(entry) for entry in entries))

    def permits(self, host: str, port: int) -> bool:
        """By name alone; whether the address behind it may be reached is another question (`addresses.Reach`)."""
        name = normal(host)
        if not (_NAME.fullmatch(name) or is_address(name)):
            return False
        return any(allowed.fits(name, port) for allowed in self.hosts)

    def covers(self, host: AllowedHost) -> bool:
        """May whoever has this network be given that host by itself?"""
        return self.mode == "open" or any(allowed.covers(host) for allowed in self.hosts)


def normal(host: str) -> str:
    """As it is compared: in small letters, without the root's dot, an address in its usual form."""
    name = host.lower().removesuffix(".")
    try:
        return str(ip_address(name.removeprefix("[").removesuffix("]")))
    except ValueError:
        return name


def is_address(name: str) -> bool:
    """Also in the forms that only resolvers read as one: 2130706433, 0x7f.1, 127.1."""
    try:
        ip_address(name)
    except ValueError:
        return name.rpartition(".")[2].isdecimal() or name.rpartition(".")[2].startswith("0x")
    return True
