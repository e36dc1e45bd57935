"""Network access of commands: none, an allow-list of hosts, or the same access as the worker."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Literal, TypeAlias

NetworkMode: TypeAlias = Literal["none", "allow", "open"]

DEFAULT_PORTS: Final = frozenset({80, 443})
ANY: Final = "*"
_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_WITH_PORT: Final = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]+):(?P<port>\d{1,5})")
_MAX_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """An entry of an allow-list: `example.com`, `*.example.com` (all subdomains) or `*` (every name), with a port or
    for ports 80 and 443.
    """

    name: str
    ports: frozenset[int] = DEFAULT_PORTS

    @classmethod
    def parse(cls, entry: str) -> "AllowedHost":
        """Parse an entry. The ValueError for an invalid one explains the syntax."""
        found = _WITH_PORT.fullmatch(entry.strip())
        host, ports = (found["host"], frozenset({int(found["port"])})) if found else (entry.strip(), DEFAULT_PORTS)
        name = normalize_host(host)
        base_name = name.removeprefix("*.")
        if not (name == ANY or _NAME.fullmatch(base_name) or is_address(name)) or not all(
            0 < p <= _MAX_PORT for p in ports
        ):
            raise ValueError(
                f"{entry!r} is not a valid host. Write a name without scheme or path, as in: example.com, "
                "*.example.com, git.example.com:8443. Write international names in their xn-- form."
            )
        return cls(name, ports)

    def matches(self, name: str, port: int) -> bool:
        if port not in self.ports:
            return False
        if self.name == ANY:
            return not is_address(name)
        if self.name.startswith("*."):
            return name.endswith(self.name[1:]) and not is_address(name)
        return name == self.name

    def covers(self, other: "AllowedHost") -> bool:
        """Whether this entry allows everything that the other allows."""
        if not other.ports <= self.ports:
            return False
        if other.name == ANY or other.name.startswith("*."):
            return self.name == ANY or (self.name.startswith("*.") and other.name[1:].endswith(self.name[1:]))
        return all(self.matches(other.name, port) for port in other.ports)


@dataclass(frozen=True, slots=True)
class Network:
    mode: NetworkMode = "none"
    hosts: Sequence[AllowedHost] = field(default=())

    @classmethod
    def allow(cls, entries: Sequence[str]) -> "Network":
        """Build an allow-list. Raises ValueError for an invalid entry."""
        return cls("allow", tuple(AllowedHost.parse(entry) for entry in entries))

    def permits(self, host: str, port: int) -> bool:
        """Whether the host name is allowed. The address that it resolves to is checked separately."""
        name = normalize_host(host)
        if not (_NAME.fullmatch(name) or is_address(name)):
            return False
        return any(allowed.matches(name, port) for allowed in self.hosts)

    def covers(self, host: AllowedHost) -> bool:
        """Whether an environment with this network may be given that host as an allow-list entry."""
        return self.mode == "open" or any(allowed.covers(host) for allowed in self.hosts)


def normalize_host(host: str) -> str:
    """Normalise a host for comparison: lower case, without a trailing dot, addresses in their canonical form."""
    name = host.lower().removesuffix(".")
    try:
        return str(ip_address(name.removeprefix("[").removesuffix("]")))
    except ValueError:
        return name


def is_address(name: str) -> bool:
    """Whether it is an IP address, also in forms that only resolvers accept: 2130706433, 0x7f.1, 127.1."""
    try:
        ip_address(name)
    except ValueError:
        return name.rpartition(".")[2].isdecimal() or name.rpartition(".")[2].startswith("0x")
    return True
