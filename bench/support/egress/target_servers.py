"""Servers on this machine that an agent must not reach, or only by name. They record the requested paths."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

SERVER_TEXT = "the word of a server outside"
_REDIRECTS = "to/"


@dataclass(slots=True)
class TargetServers:
    port: int = 0
    """The port, the same on every address."""
    unlisted: int = 0
    """A loopback port that no allow-list has."""
    address: str = ""
    """This machine's own address, other than loopback; empty if it has none."""
    address6: str = ""
    abstract: str = field(default_factory=lambda: f"footplate-{secrets.token_hex(8)}")
    requested_paths: list[str] = field(default_factory=list)
    datagrams: list[bytes] = field(default_factory=list)
    """Datagrams received by UDP."""

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        path = head.split(" ")[1].lstrip("/")
        self.requested_paths.append(path)
        lead = path.partition(_REDIRECTS)[2]
        status = f"302 Found\r\nlocation: http://{lead}" if lead else "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(SERVER_TEXT)}\r\n\r\n{SERVER_TEXT}".encode())
        writer.close()


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, servers: TargetServers) -> None:
        self._servers = servers
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._servers.datagrams.append(data)
        assert self._transport is not None
        self._transport.sendto(SERVER_TEXT.encode(), addr)


@asynccontextmanager
async def open_servers() -> AsyncIterator[TargetServers]:
    servers = TargetServers(
        address=_own_address(socket.AF_INET, "192.0.2.1"), address6=_own_address(socket.AF_INET6, "2001:db8::1")
    )
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as exits:
        everywhere = socket.create_server(("0.0.0.0", 0))
        servers.port = everywhere.getsockname()[1]
        listeners = [everywhere, socket.create_server(("127.0.0.1", 0))]
        servers.unlisted = listeners[1].getsockname()[1]
        if socket.has_dualstack_ipv6() or servers.address6:
            listeners.append(socket.create_server(("::", servers.port), family=socket.AF_INET6))
        hidden = socket.socket(socket.AF_UNIX)
        hidden.bind("\0" + servers.abstract)
        for listener in listeners:
            server = await asyncio.start_server(servers.respond, sock=listener)
            exits.callback(server.close)
        unix = await asyncio.start_unix_server(servers.respond, sock=hidden)
        exits.callback(unix.close)
        for host in ("0.0.0.0", "::") if len(listeners) > 2 else ("0.0.0.0",):
            transport, _ = await loop.create_datagram_endpoint(
                lambda: _Udp(servers), sock=_datagrams(host, servers.port)
            )
            exits.callback(transport.close)
        yield servers


def _datagrams(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    if ":" in host:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind((host, port))
    return listener


def _own_address(family: socket.AddressFamily, far: str) -> str:
    """Returns the address from which this machine would reach `far`. Nothing is sent."""
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((far, 9))
        except OSError:
            return ""
        return str(asking.getsockname()[0])
