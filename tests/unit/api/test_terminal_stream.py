"""A connection to a terminal: people who come late can type, and a client that reads nothing is disconnected."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from starlette.websockets import WebSocket

from footplate.api.streams import terminal_stream
from footplate.api.streams.terminal_stream import TerminalConnection
from footplate.domain.ports.terminals import TerminalFrame, TerminalInput, TerminalSize

pytestmark = pytest.mark.timing

SIZE = TerminalSize(101, 33)


class FakeSocket:
    """A client that types one message. `reads`: whether it accepts what it is sent."""

    def __init__(self, *, reads: bool = True) -> None:
        self.scope = {"request_id": "req_1"}
        self.sent: list[dict[str, Any]] = []
        self.reads = reads
        self._keys = [{"type": "websocket.receive", "bytes": b"ls\r"}]
        self.may_type = asyncio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        if not self.reads and self.sent:
            await asyncio.Event().wait()
        self.sent.append(message)
        if "bytes" in message:
            self.may_type.set()

    async def receive(self) -> dict[str, Any]:
        await self.may_type.wait()
        if not self._keys:
            await asyncio.sleep(0.05)
            return {"type": "websocket.disconnect"}
        return self._keys.pop()

    async def close(self, code: int, reason: str) -> None:
        self.sent.append({"close": code, "reason": reason})


class FakeViews:
    def __init__(self, *frames: TerminalFrame) -> None:
        self._frames = frames
        self.received: list[tuple[str, bytes]] = []

    async def frames(self, organisation: str, session_id: str) -> AsyncIterator[TerminalFrame | None]:
        for frame in self._frames:
            yield frame
        await asyncio.Event().wait()

    async def send(self, organisation: str, session_id: str, terminal_id: str, sent: TerminalInput) -> None:
        self.received.append((terminal_id, sent.keys))


async def serve(socket: FakeSocket, views: FakeViews, revoked_after: float = 60) -> None:
    connection = TerminalConnection(cast("WebSocket", socket), views, "org", "sesn_1", may_write=True)
    await connection.serve(cast("Any", asyncio.sleep(revoked_after)))


@pytest.mark.requirement("O3")
async def test_a_person_can_type_although_the_announcement_of_the_program_is_no_longer_there() -> None:
    socket = FakeSocket()
    views = FakeViews(TerminalFrame("closed", "sevt_1", b"exit code 0"), TerminalFrame("output", "sevt_2", b"$ ", SIZE))
    await serve(socket, views)
    assert views.received == [("sevt_2", b"ls\r")]
    texts = [json.loads(message["text"]) for message in socket.sent if "text" in message]
    assert [text["type"] for text in texts] == ["attached", "closed", "opened"]
    assert texts[-1] == {"type": "opened", "terminal_id": "sevt_2", "columns": 101, "rows": 33}


async def test_a_revoked_client_that_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_stream, "_CLOSE_SECONDS", 0.05)
    socket = FakeSocket(reads=False)
    await asyncio.wait_for(serve(socket, FakeViews(TerminalFrame("output", "sevt_1", b"$ ")), 0.05), 5)
    assert len(socket.sent) == 1
