"""An HTTP server on loopback that receives webhooks, records them, and responds as a test wants."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from footplate.stack.free_ports import LOOPBACK

HANG: Final = 0
"""Instead of a status: the server never responds."""
_BINARY: Final = "surrogateescape"
"""Bytes that are not UTF-8 are read back as they were."""


@dataclass(frozen=True, slots=True)
class ReceivedWebhook:
    path: str
    headers: dict[str, str]
    """With names in lower case."""
    body: str

    @property
    def content(self) -> bytes:
        return self.body.encode(errors=_BINARY)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def payload(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    @property
    def type(self) -> str:
        return str(self.payload["data"]["type"])

    @property
    def session_id(self) -> str:
        return str(self.payload["data"]["id"])


Respond = Callable[[ReceivedWebhook], int | tuple[int, dict[str, str]] | Awaitable[int]]


@dataclass(slots=True)
class WebhookReceiver:
    respond: Respond = lambda _: 200
    received: list[ReceivedWebhook] = field(default_factory=list)
    accepted: list[ReceivedWebhook] = field(default_factory=list)
    """Those that got a 2xx response."""
    _server: asyncio.Server | None = None
    _port: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()

    def url(self, path: str = "/") -> str:
        return f"http://{LOOPBACK}:{self._port}{path}"

    @property
    def port(self) -> int:
        return self._port

    async def wait_until(self, holds: Callable[[], bool], seconds: float = 30) -> bool:
        """Waits for a state of the recorded requests. Returns False after the timeout."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            webhook = await _read_request(reader)
            self.received.append(webhook)
            self._changed.set()
            response = self.respond(webhook)
            if isinstance(response, Awaitable):
                response = await response
            status, headers = response if isinstance(response, tuple) else (response, {})
            if status == HANG:
                await reader.read()  # until the client gives up
                return
            lines = [
                f"HTTP/1.1 {status} X",
                "content-length: 0",
                *(f"{name}: {value}" for name, value in headers.items()),
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            await writer.drain()
            if status // 100 == 2:
                self.accepted.append(webhook)
                self._changed.set()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _read_request(reader: asyncio.StreamReader) -> ReceivedWebhook:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedWebhook(first.split(" ")[1], headers, body.decode(errors=_BINARY))
