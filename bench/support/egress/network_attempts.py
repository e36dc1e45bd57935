"""Attempts to reach servers from inside a sandbox, and which of them may succeed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.support.egress.target_servers import SERVER_TEXT, TargetServers

ALLOWED: Final = ("allowed.test", "allowed6.test", "*.wild.test", "inside.test", "meta.test", "mapped.test")
ADDRESSES: Final = {
    "allowed.test": "127.0.0.1",
    "allowed6.test": "::1",
    "a.b.wild.test": "127.0.0.1",
    "other.test": "127.0.0.1",
    "inside.test": "127.0.0.1",
    "meta.test": "169.254.169.254",
    "mapped.test": "::ffff:127.0.0.1",
}
INTERNAL_BUT_ALLOWED: Final = ("allowed.test", "allowed6.test", "a.b.wild.test")
"""Names that the operator allows although they lead inside: the servers of this claim are on loopback."""
_METADATA: Final = ("169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254")
_FAR: Final = ("8.8.8.8", "1.1.1.1", "2606:4700:4700::1111")


@dataclass(frozen=True, slots=True)
class NetworkAttempt:
    name: str
    way: str
    arguments: Sequence[str | int] = ()
    passes: bool = False
    expected: str = SERVER_TEXT
    """Text in the response if the attempt may pass, and text that must not be there if it may not."""
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def as_request(self) -> list[object]:
        return [self.name, self.way, list(self.arguments), self.variables]


def attempts_with_allow_list(servers: TargetServers) -> list[NetworkAttempt]:
    """Returns attempts with an allow-list."""
    port = servers.port
    cases = [*_passing(port)]
    hosts = {
        "another name": "other.test",
        "a name behind a listed one": "allowed.test.other.test",
        "a name before a listed one": "xallowed.test",
        "the parent of a wildcard": "wild.test",
        "a NUL in the name": "allowed.test\0.other.test",
        "an escaped name": "%61llowed.test",
        "two names": "other.test@allowed.test",
        "loopback": "127.0.0.1",
        "loopback as a number": "2130706433",
        "loopback in short": "127.1",
        "loopback in octal": "0177.0.0.1",
        "all addresses": "0.0.0.0",
        "IPv6 loopback": "[::1]",
        "IPv4 inside IPv6": "[::ffff:127.0.0.1]",
        "this machine": servers.address or "127.0.0.2",
        "this machine by IPv6": f"[{servers.address6 or '::1'}]",
        "localhost": "localhost",
        "a listed name that leads inside": "inside.test",
        "a listed name that leads inside by IPv6": "mapped.test",
        "a listed name that leads to metadata": "meta.test",
        **{f"metadata at {address}": f"[{address}]" if ":" in address else address for address in _METADATA},
    }
    for what, host in hosts.items():
        cases += [
            NetworkAttempt(f"GET for {what}", "get", (f"{host}:{port}", f"get-{what}")),
            NetworkAttempt(f"CONNECT to {what}", "connect", (f"{host}:{port}", f"connect-{what}")),
        ]
    url = f"http://allowed.test:{port}"
    head = "HTTP/1.1\r\nhost: allowed.test\r\n\r\n"
    second = f"GET http://other.test:{port}/second {head}"
    cases += [
        NetworkAttempt("a port that is not listed", "get", (f"allowed.test:{servers.unlisted}", "unlisted")),
        NetworkAttempt(
            "CONNECT to a port that is not listed", "connect", (f"allowed.test:{servers.unlisted}", "unlisted2")
        ),
        NetworkAttempt("the default port of a name with another port", "get", ("allowed.test", "usual")),
        NetworkAttempt("a redirect to another name", "client", (f"{url}/to/other.test:{port}/redirected",)),
        NetworkAttempt("a redirect to an address", "client", (f"{url}/to/127.0.0.1:{port}/redirected-address",)),
        NetworkAttempt("a redirect to IPv6", "client", (f"{url}/to/[::1]:{port}/redirected-6",)),
        # The first gets a response. The servers know whether the second arrived.
        NetworkAttempt(
            "a second request on a checked connection", "through_proxy", (f"GET {url}/first {head}{second}",), True
        ),
        NetworkAttempt("another scheme", "through_proxy", (f"GET ftp://allowed.test:{port}/ftp {head}",)),
        NetworkAttempt("SOCKS", "through_proxy", ("\x05\x01\x00",)),
        NetworkAttempt(
            "another name with a listed one's Host", "through_proxy", (f"GET http://other.test:{port}/fronted {head}",)
        ),
    ]
    return [*cases, *direct_attempts(servers)]


def _passing(port: int) -> list[NetworkAttempt]:
    url = f"http://allowed.test:{port}"
    return [
        NetworkAttempt("GET by name", "get", (f"allowed.test:{port}", "ok-get"), passes=True),
        NetworkAttempt("GET by name, other letters", "get", (f"ALLOWED.test.:{port}", "ok-letters"), passes=True),
        NetworkAttempt("CONNECT by name", "connect", (f"allowed.test:{port}", "ok-connect"), passes=True),
        NetworkAttempt("below a wildcard", "get", (f"a.b.wild.test:{port}", "ok-wild"), passes=True),
        NetworkAttempt("a name that leads to IPv6", "connect", (f"allowed6.test:{port}", "ok-6"), passes=True),
        NetworkAttempt("urllib", "client", (f"{url}/ok-urllib",), passes=True),
        NetworkAttempt("curl", "curl", (f"{url}/ok-curl",), passes=True),
        NetworkAttempt("curl through a tunnel", "curl", ("-p", f"{url}/ok-curl-tunnel"), passes=True),
        NetworkAttempt(
            "a redirect to a listed name", "client", (f"{url}/to/a.b.wild.test:{port}/ok-redirect",), passes=True
        ),
    ]


def direct_attempts(servers: TargetServers) -> list[NetworkAttempt]:
    """Returns attempts without the proxy: as if the variables were not set, or the program ignored them."""
    port = servers.port
    url = f"http://allowed.test:{port}"
    own = [address for address in (servers.address, servers.address6) if address]
    cases = [
        NetworkAttempt("proxy variables unset: a listed name", "without_proxy", (f"{url}/direct-name",)),
        NetworkAttempt(
            "proxy variables unset: an address", "without_proxy", (f"http://127.0.0.1:{port}/direct-address",)
        ),
        NetworkAttempt("no_proxy for all", "client", (f"{url}/no-proxy",), variables={"no_proxy": "*"}),
        NetworkAttempt("curl without its proxy", "curl", ("--noproxy", "*", f"{url}/curl-direct")),
        NetworkAttempt("loopback", "tcp", ("127.0.0.1", port, "tcp-loopback")),
        NetworkAttempt("IPv6 loopback", "tcp", ("::1", port, "tcp-loopback6")),
        NetworkAttempt("all addresses", "tcp", ("0.0.0.0", port, "tcp-all")),
        NetworkAttempt("name service", "name_service", ("allowed.test",), expected="127.0.0.1"),
        NetworkAttempt("name service, a public name", "name_service", ("example.com",), expected="AF_INET"),
        NetworkAttempt("a datagram to loopback", "udp", ("127.0.0.1", port, "udp")),
        NetworkAttempt("a DNS question to loopback", "dns", ("127.0.0.1", port, "secret.example.com")),
        NetworkAttempt("an abstract socket", "abstract", (servers.abstract, "abstract")),
        NetworkAttempt("ping", "ping", ("8.8.8.8",), expected=""),
        NetworkAttempt("a socket to the hypervisor", "family", (40,), expected="a socket"),
        NetworkAttempt("a packet socket", "family", (17,), expected="a socket"),
        NetworkAttempt("a network namespace of its own", "unshare_network", (), expected="unshared"),
        NetworkAttempt("interfaces other than loopback", "interfaces", (), passes=True, expected="lo"),
    ]
    for address in (*own, *_METADATA, *_FAR):
        cases += [
            NetworkAttempt(f"straight to {_kind(address, own)}", "tcp", (address, port, "tcp-far")),
            NetworkAttempt(
                f"straight to {_kind(address, own)}, port 80", "tcp", (address, 80, "tcp-far80"), expected="HTTP"
            ),
            NetworkAttempt(f"a datagram to {_kind(address, own)}", "udp", (address, port, "udp-far")),
            NetworkAttempt(
                f"a DNS question to {_kind(address, own)}", "dns", (address, 53, "secret.example.com"), expected=""
            ),
        ]
    return cases


def attempts_without_network(servers: TargetServers) -> list[NetworkAttempt]:
    """Returns attempts without a network: the direct ones, and the missing allow-list proxy."""
    return [
        *direct_attempts(servers),
        NetworkAttempt("an allow-list proxy", "get", (f"allowed.test:{servers.port}", "none-get")),
        NetworkAttempt(
            "the socket of an allow-list proxy", "unix_socket", ("egress.sock", "anthropic", "x"), expected=""
        ),
        NetworkAttempt(
            "the model proxy without a token", "unix_socket", ("model.sock", "anthropic", "guess"), True, "401 "
        ),
    ]


def attempts_with_token(token: str) -> list[NetworkAttempt]:
    return [
        NetworkAttempt(
            "the model proxy with the turn's token", "unix_socket", ("model.sock", "anthropic", token), True, "200 "
        )
    ]


def attempts_on_open_network(servers: TargetServers) -> list[NetworkAttempt]:
    """Returns attempts on the worker's own network, which is open."""
    return [NetworkAttempt("loopback", "tcp", ("127.0.0.1", servers.port, "ok-open"), passes=True)]


def _kind(address: str, own: Sequence[str]) -> str:
    """Describes an address without revealing the addresses of this machine."""
    if address in own:
        return "this machine by IPv6" if ":" in address else "this machine"
    return address
