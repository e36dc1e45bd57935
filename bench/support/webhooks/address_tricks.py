"""URLs that try to make the server send a webhook to a private address, and the DNS responses that belong to them."""

import socket
from collections.abc import Sequence
from typing import Any, Final

_ADDRESSES: Final = (
    *("127.0.0.1", "127.1", "127.0.0.2", "2130706433", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0"),
    *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "100.64.0.1", "198.18.0.1"),
    *("192.0.0.192", "168.63.129.16", "192.88.99.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "203.0.113.7"),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:0:0:1]"),
    *("[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1]", "[fc00::1]"),
    *("[fd00:ec2::254]", "[ff02::1]", "[fec0::1]", "[2001:db8::1]", "[3fff::1]", "[100::1]", "[64:ff9b:1::1]"),
)
NAMES: Final = {
    "loopback.evil.test": ["127.0.0.1"],
    "loopback6.evil.test": ["::1"],
    "mapped.evil.test": ["::ffff:127.0.0.1"],
    "private.evil.test": ["10.1.2.3"],
    "metadata.evil.test": ["169.254.169.254"],
    "second-is-private.evil.test": ["93.184.216.34", "127.0.0.1"],
    "nat64.evil.test": ["64:ff9b::a00:1"],
    "zero.evil.test": ["0.0.0.0"],
}
"""Host names that resolve to private addresses. `localhost` is resolved by the machine itself."""
REBINDING_NAME: Final = "rebinding.evil.test"
"""A name that resolves to a public address first, and to loopback at every later lookup."""


def trick_urls(port: int, *, schemes: Sequence[str] = ("http", "https")) -> list[str]:
    """Returns the URLs, for a server that listens on a port of loopback."""
    hosts = [*_ADDRESSES, *NAMES, "localhost", "LOCALHOST.", "sub.localhost"]
    urls = [f"{scheme}://{host}:{port}/trick" for scheme in schemes for host in hosts]
    return [
        *urls,
        *(f"http://{host}:{port}/trick" for host in ("user@127.0.0.1", "user:pass@127.0.0.1", "example.com@127.0.0.1")),
        f"http://127.0.0.1:{port}\\@example.com/trick",
        f"http://127.0.0.1%2f@example.com:{port}/trick",
        f"http:///127.0.0.1:{port}/trick",
        f"http:127.0.0.1:{port}/trick",
        f"//127.0.0.1:{port}/trick",
        f"file:///etc/passwd?{port}",
        f"gopher://127.0.0.1:{port}/trick",
        f"http://127.0.0.1:{port}/trick#@example.com",
        f"http://①②⑦.⓪.⓪.①:{port}/trick",
        f"http://127。0。0。1:{port}/trick",
    ]


class TrickNames:
    """Resolves the names of this module without a network. Everything else is resolved by the machine."""

    def __init__(self, public_address: str = "93.184.216.34") -> None:
        self._public_address = public_address
        self.rebinding_lookups = 0

    def getaddrinfo(self, host: str, port: int, family: int = 0, kind: int = 0) -> Sequence[tuple[Any, ...]]:
        name = host.lower().rstrip(".")
        if name == REBINDING_NAME:
            self.rebinding_lookups += 1
            return [_entry(self._public_address if self.rebinding_lookups == 1 else "127.0.0.1", port)]
        if name in NAMES:
            return [_entry(address, port) for address in NAMES[name]]
        return socket.getaddrinfo(host, port, family, kind)


def _entry(address: str, port: int) -> tuple[Any, ...]:
    return (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
