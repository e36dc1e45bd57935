"""A server for tests that sends scripted bytes as the response to each request.

It uses no web framework, so that a connection can be cut in the middle of a response.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class ScriptedServer:
    """When all responses are used up, it closes the connection without one."""

    responses: list[bytes] = field(default_factory=list)
    requests: list[ReceivedRequest] = field(default_factory=list)
    url: str = ""
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, path, _ = first.split()
            self.requests.append(ReceivedRequest(method, path, headers, body))
            if self.responses:
                writer.write(self.responses.pop(0))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


def json_response(body: Any, status: int = 200, **headers: str) -> bytes:
    data = json.dumps(body).encode()
    lines = [
        f"HTTP/1.1 {status} X",
        f"content-length: {len(data)}",
        "connection: close",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + data


def failure(status: int, *, code: str = "invalid_request", **details: Any) -> dict[str, Any]:
    error = {"type": "some_error", "message": "It says why.", "title": "A title", "docs": f"docs/errors.md#{code}"}
    return {"type": "error", "error": {**error, **details}, "request_id": f"req_{status}"}


def stream(*frames: bytes, cut: bool = False) -> bytes:
    """Returns a response with these frames, which ends as a stopping server ends it, or is cut in the middle."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames)
    return head + chunks + (b"" if cut else b"0\r\n\r\n")


def event(position: int | str, kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields})
    return f"event: {kind}\nid: {position}\ndata: {data}\n\n".encode()


def cursors(requests: Sequence[ReceivedRequest]) -> list[str | None]:
    return [each.headers.get("last-event-id") for each in requests]
