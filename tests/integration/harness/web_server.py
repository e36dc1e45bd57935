"""A small web server on loopback whose responses are raw bytes, so that they can be invalid."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

PageResponse = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class SeenRequest:
    method: str
    target: str
    headers: Mapping[str, str]


@dataclass
class PageServer:
    responses: dict[str, PageResponse] = field(default_factory=dict)
    """The response for each path, without the query."""
    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    seen: list[SeenRequest] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a connection has ended."""
    port: int = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def url(self, path: str = "/", *, host: str | None = None, scheme: str = "http") -> str:
        return f"{scheme}://{host or self.host}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            self.seen.append(SeenRequest(method, target, headers))
            self.arrived.set()
            response = self.responses.get(target.partition("?")[0], ok(b"not there", status="404 Not Found"))
            if isinstance(response, bytes):
                writer.write(response)
                await writer.drain()
            else:
                await response(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.disconnected.set()


def ok(body: bytes, content_type: str = "text/plain", *, status: str = "200 OK", extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
    return head.encode("latin-1") + body


def redirect(location: str, *, extra: str = "") -> bytes:
    return ok(b"", status="302 Found", extra=f"location: {location}\r\n{extra}")


async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends a body without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while True:
        writer.write(b"more " * 2000)
        await writer.drain()


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Reads the request and never responds. Returns when the client disconnects."""
    await reader.read()
