"""One client connection of the allow-list proxy: parses the request with h11 and relays the data.

A connection serves one request and is then closed, so no later request can bypass the checks.
"""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import h11

from footplate.proxy.hop_by_hop_headers import HOP_BY_HOP, Headers, has_two_lengths, remove_headers

_CHUNK_BYTES: Final = 1 << 16
_MAX_HEAD_BYTES: Final = 1 << 16
_NOT_FORWARDED: Final = HOP_BY_HOP | {b"host", b"expect", b"proxy-authorization"}


class ProxyRequestRefused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class ConnectionBroken(Exception):
    """The other side closed the connection in the middle of a message, or before it."""


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    host: str
    port: int
    path: str = ""
    """Empty for a tunnel."""

    @property
    def is_tunnel(self) -> bool:
        return not self.path

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 80 and self.path else f"{host}:{self.port}"  # noqa: PLR2004 - HTTP port

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_target(method: str, target: str) -> ProxyTarget:
    """Parses the request target. Raises `ProxyRequestRefused` if it does not name exactly one host."""
    is_tunnel = method == "CONNECT"
    try:
        parts = urlsplit(f"//{target}" if is_tunnel else target)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ProxyRequestRefused(400, f"{target!r} is not a valid address.") from None
    if not host or parts.username is not None or parts.password is not None or "%" in host:
        raise ProxyRequestRefused(
            400, f"{target!r} is not a valid address. Send a host without a user name or password."
        )
    if is_tunnel:
        if port is None or parts.path or parts.query:
            raise ProxyRequestRefused(400, "The target of CONNECT must be host:port, without a path or query.")
        return ProxyTarget(host, port)
    if parts.scheme != "http":
        raise ProxyRequestRefused(400, "This proxy accepts only absolute http:// URLs. Use CONNECT for anything else.")
    query = f"?{parts.query}" if parts.query else ""
    return ProxyTarget(host, 80 if port is None else port, (parts.path or "/") + query)


class ProxyClient:
    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._request: h11.Request | None = None

    async def read_target(self) -> ProxyTarget:
        event = await _next_event(self._http, self._reader)
        if not isinstance(event, h11.Request):
            raise ConnectionBroken
        self._request = event
        if has_two_lengths(event.headers.raw_items()):
            raise ProxyRequestRefused(
                400, "The request has more than one Content-Length or Transfer-Encoding header. Send exactly one."
            )
        return parse_target(event.method.decode("ascii"), event.target.decode("ascii"))

    async def refuse(self, refused: ProxyRequestRefused) -> None:
        body = f"Footplate: {refused.message}\n".encode()
        headers = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body)))]
        self._send(h11.Response(status_code=refused.status, headers=[*headers, ("connection", "close")]))
        self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())
        await self._writer.drain()

    async def accept_tunnel(self) -> None:
        self._send(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
        await self._writer.drain()

    async def relay_request(self, target: ProxyTarget, reader: StreamReader, writer: StreamWriter) -> None:
        """Forwards one request and returns its response."""
        assert self._request is not None
        upstream = h11.Connection(h11.CLIENT)
        if self._http.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[]))
        headers: Headers = [
            (b"host", target.authority.encode()),
            *remove_headers(self._request.headers, _NOT_FORWARDED),
        ]
        framing = [] if any(name == b"content-length" for name, _ in headers) else self._framing()
        request = h11.Request(
            method=self._request.method,
            target=target.path,
            headers=[*headers, *framing, (b"connection", b"close")],
        )
        writer.write(upstream.send(request) or b"")
        sending = asyncio.create_task(self._send_request_body(upstream, writer))
        try:
            await self._relay_response(upstream, reader)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    def _framing(self) -> Headers:
        assert self._request is not None
        chunked = any(name == b"transfer-encoding" for name, _ in self._request.headers)
        return [(b"transfer-encoding", b"chunked")] if chunked else []

    async def _send_request_body(self, upstream: h11.Connection, writer: StreamWriter) -> None:
        async for event in _message_events(self._http, self._reader):
            if isinstance(event, h11.Data):
                writer.write(upstream.send(h11.Data(data=bytes(event.data))) or b"")
            else:
                writer.write(upstream.send(h11.EndOfMessage()) or b"")
            await writer.drain()

    async def _relay_response(self, upstream: h11.Connection, reader: StreamReader) -> None:
        async for event in _message_events(upstream, reader):
            if isinstance(event, h11.Response):
                headers = [*remove_headers(event.headers), (b"connection", b"close")]
                self._send(h11.Response(status_code=event.status_code, headers=headers, reason=event.reason))
            elif isinstance(event, h11.Data):
                self._send(h11.Data(data=bytes(event.data)))
            elif isinstance(event, h11.EndOfMessage):
                self._send(h11.EndOfMessage())
            await self._writer.drain()

    def close(self) -> None:
        self._writer.close()

    async def copy_to_server(self, writer: StreamWriter) -> None:
        """Copies the client's side of a tunnel, starting with data that arrived with its request."""
        writer.write(self._http.trailing_data[0])
        await _copy(self._reader, writer)

    async def copy_to_client(self, reader: StreamReader) -> None:
        await _copy(reader, self._writer)

    def _send(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")


async def run_tunnel(client: ProxyClient, reader: StreamReader, writer: StreamWriter) -> None:
    """Relays data until both sides are finished or one disconnects."""
    async with asyncio.TaskGroup() as both:
        both.create_task(client.copy_to_server(writer))
        both.create_task(client.copy_to_client(reader))


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    """Copies data. A broken connection is closed, which ends the other direction too."""
    try:
        while piece := await reader.read(_CHUNK_BYTES):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def _message_events(http: h11.Connection, reader: StreamReader) -> AsyncIterator[h11.Event]:
    """Yields the events of one message, including its end."""
    while True:
        event = await _next_event(http, reader)
        if isinstance(event, h11.ConnectionClosed):
            raise ConnectionBroken
        yield event
        if isinstance(event, h11.EndOfMessage):
            return


async def _next_event(http: h11.Connection, reader: StreamReader) -> h11.Event:
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(_CHUNK_BYTES))
        elif isinstance(event, h11.Event):
            return event
        else:
            raise ConnectionBroken
