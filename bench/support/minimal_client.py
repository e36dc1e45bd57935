"""A minimal HTTP/1.1 client over asyncio streams, so that measurements show the server's time and not the client's.

The official SDK takes more time than the response that it waits for. This client stores received events as bytes with
their arrival time; `check` validates them with the SDK's models after the measurement.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

import orjson

from bench.prove.figure import NotHeld
from bench.support.response_validation import Frame, ValidationLedger

MODEL: Final = "claude-sonnet-4-5"
DELTAS: Final = "event_deltas%5B%5D=agent.message"
_MAX_BUFFER_BYTES: Final = 16 * 1024 * 1024
_PATIENCE: Final = 60.0
_REUSE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Received:
    """One server-sent event, and its arrival time (seconds since the epoch)."""

    at: float
    event: str
    id: str
    data: bytes

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = orjson.loads(self.data)
        return body


class MinimalClient:
    def __init__(self, base_url: str, key: str = "", *, extra: Mapping[str, str] | None = None) -> None:
        """`extra` are additional headers of every request."""
        url = urlsplit(base_url)
        self.address = url.hostname or "", url.port or 80
        self.key = key
        headers = [f"host: {url.netloc}", "content-type: application/json"]
        headers += [f"{name}: {value}" for name, value in (extra or {}).items()]
        self._headers = "\r\n".join([*headers, f"authorization: Bearer {key}"] if key else headers)
        self._idle: list[_Connection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for idle in self._idle:
            idle.writer.close()

    async def create_session_fields(self, **agent_fields: str) -> dict[str, str]:
        """Creates an agent without tools and an environment, and returns the fields for creating a session with them.

        `more` are additional fields of the agent.
        """
        named = {"name": f"measured-{secrets.token_hex(4)}"}
        agent = await self.post("/v1/agents", {**named, "model": MODEL, **agent_fields})
        environment = await self.post(
            "/v1/environments", {**named, "config": {"type": "cloud", "networking": {"type": "unrestricted"}}}
        )
        return {"agent": agent["id"], "environment_id": environment["id"]}

    async def send(self, session_id: str, text: str) -> None:
        await self.post(f"/v1/sessions/{session_id}/events", {"events": [message(text)]})

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._call("POST", path, orjson.dumps(body))

    async def get(self, path: str) -> dict[str, Any]:
        return await self._call("GET", path, b"")

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator["Frames"]:
        """Opens a stream on its own connection, and yields once the response headers have arrived."""
        connection = await self._connect()
        try:
            connection.writer.write(self._request("GET", path, b""))
            await _read_headers(connection.reader)
            yield Frames(connection.reader)
        finally:
            connection.writer.close()

    async def _call(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        connection = self._reuse_connection() or await self._connect()
        connection.writer.write(self._request(method, path, body))
        headers = await _read_headers(connection.reader)
        content = await connection.reader.readexactly(int(headers[b"content-length"]))
        connection.used = time.monotonic()
        self._idle.append(connection)
        response: dict[str, Any] = orjson.loads(content)
        return response

    def _reuse_connection(self) -> "_Connection | None":
        """Returns the most recently used idle connection, unless the server is about to close it."""
        while self._idle:
            connection = self._idle.pop()
            if time.monotonic() - connection.used < _REUSE_SECONDS:
                return connection
            connection.writer.close()
        return None

    async def _connect(self) -> "_Connection":
        return _Connection(*await asyncio.open_connection(*self.address, limit=_MAX_BUFFER_BYTES))

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body


@dataclass(slots=True)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: float = 0.0


class Frames:
    """Iterates over the events of one stream as they arrive."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._buffer = b""
        self._ready: list[Received] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Received:
        while not self._ready:
            size = int(await self._reader.readline() or b"0", 16)
            if size == 0:
                raise StopAsyncIteration
            chunk = await self._reader.readexactly(size + 2)
            self._feed(chunk[:-2], time.time())
        return self._ready.pop(0)

    async def until(self, *events: str, patience: float = _PATIENCE) -> list[Received]:
        """Returns all events up to and including the next one of these types."""
        found = []
        async with asyncio.timeout(patience):
            async for frame in self:
                found.append(frame)
                if frame.event in events:
                    return found
        raise NotHeld(f"the stream ended before any of {events}: {[frame.event for frame in found]}")

    async def until_idle(self, *, patience: float = _PATIENCE) -> list[Received]:
        return await self.until("session.status_idle", patience=patience)

    def _feed(self, chunk: bytes, now: float) -> None:
        *blocks, self._buffer = (self._buffer + chunk).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if line and not line.startswith(b":"))
            if fields and fields[b"event"] != b"ping":
                event, event_id = fields[b"event"].decode(), fields.get(b"id", b"").decode()
                self._ready.append(Received(now, event, event_id, fields[b"data"]))


def message(text: str) -> dict[str, Any]:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def events_path(session_id: str, *, deltas: bool = False, after: int | None = None) -> str:
    """Returns the path of the session's event stream. It starts with new events, or after the sequence `after`."""
    query = [f"after={after}"] if after is not None else []
    return f"/v1/sessions/{session_id}/events/stream?" + "&".join([*query, *([DELTAS] if deltas else [])])


def validate_frames(frames: Iterable[Received], ledger: ValidationLedger | None = None) -> int:
    """Validates every frame with the SDK's models and returns how many there were."""
    ledger = ledger or ValidationLedger()
    for frame in frames:
        ledger.check_frame(Frame(frame.id, frame.body), frame.event)
    return ledger.validated


async def _read_headers(reader: asyncio.StreamReader) -> dict[bytes, bytes]:
    """Reads the response headers. A status other than 200 ends the measurement."""
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
    headers = dict(line.lower().split(b": ", 1) for line in lines)
    if b" 200 " not in status:
        text = await reader.read(int(headers.get(b"content-length", b"0")))
        raise NotHeld(f"the server responded with {status.decode()}: {text.decode(errors='replace')[:300]}")
    return headers
