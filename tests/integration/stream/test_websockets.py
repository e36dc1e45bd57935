"""WebSocket clients beside SSE clients on a real stream: the same frames, resuming midway, and slow clients."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.integration.api.serving import serve_api
from tests.unit.api.conftest import Api, make_client
from websockets.asyncio.client import ClientConnection, connect

from footplate.api.streams import key_revocation
from footplate.domain.errors import Unauthenticated
from footplate.domain.ports.api import Cursor
from footplate.domain.sessions import events
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.stream_hub import StreamHub
from footplate.stream.turn_publisher import TurnPublisher
from footplate.wiring.api_server import bind_socket

from .memory_log import MemoryLog
from .stream_client import Client

pytestmark = pytest.mark.timing

OWNER = "org_a"
"""The organisation of the API's test key."""
DELTAS = "event_deltas[]=agent.message"
SMALL = 64 * 1024
LARGE = "x" * 20_000


class Cell:
    """An API with a real stream hub and a fake store."""

    def __init__(
        self, hub: StreamHub, live: LivePublisher, log: MemoryLog, address: tuple[str, int], session_id: str, api: Api
    ) -> None:
        self.hub = hub
        self.api = api
        self.log = log
        self.live = live
        self.session_id = session_id
        self._address = address
        self._url = f"ws://{address[0]}:{address[1]}/v1/sessions/{session_id}/ws"

    @asynccontextmanager
    async def connected(self, query: str = "", **options: Any) -> AsyncIterator[ClientConnection]:
        headers = {"x-api-key": "secret-a"}
        url = f"{self._url}?{query}"
        connection = socket.create_connection(self._address)
        # With a small buffer, so that the kernel does not read ahead for the client.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        async with connect(url, sock=connection, additional_headers=headers, max_size=None, **options) as opened:
            yield opened

    async def publish(self, *new_events: events.Event) -> None:
        await self.live.publish(OWNER, self.session_id, self.log.append(self.session_id, *new_events))


@pytest.fixture
async def cell(hub: StreamHub, live: LivePublisher, log: MemoryLog) -> AsyncIterator[Cell]:
    api = Api()
    api.tails = hub  # pyrefly: ignore[bad-assignment]
    app = api.build()
    async with make_client(app) as http:
        agent = (await http.post("/v1/agents", json={"name": "a", "model": "m"})).json()["id"]
        environment = (await http.post("/v1/environments", json={"name": "e"})).json()["id"]
        session = {"agent": agent, "environment_id": environment}
        session_id = (await http.post("/v1/sessions", json=session)).json()["id"]
    log.append(session_id)
    listener = bind_socket("127.0.0.1", 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
    async with serve_api(app, listener=listener):
        yield Cell(hub, live, log, listener.getsockname(), session_id, api)


async def _until(opened: ClientConnection, event: str) -> list[dict[str, Any]]:
    received: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not received or received[-1]["event"] != event:
            received.append(json.loads(await opened.recv()))
    return received


@pytest.mark.requirement("S11")
async def test_websocket_frames_are_the_same_as_sse(cell: Cell) -> None:
    sse = await Client(cell.hub, cell.session_id, organisation=OWNER, cursor=Cursor(0)).open()
    async with cell.connected(f"after=0&{DELTAS}") as opened:
        turn = TurnPublisher(cell.live, OWNER, cell.session_id)
        await turn.publish(cell.log.append(cell.session_id, events.status_running()))
        preview = turn.preview("agent.message")
        preview.write("Grüße \u2028")
        received = await _until(opened, "event_delta")
        await sse.until("event_delta")
        await turn.publish(cell.log.append(cell.session_id, events.message("Grüße \u2028", event_id=preview.event_id)))
        await turn.publish(cell.log.append(cell.session_id, events.status_idle({"type": "end_turn"})))
        received += await _until(opened, "session.status_idle")
    await sse.until("session.status_idle")
    assert received == [{"event": frame.event, "id": frame.id, "data": frame.data} for frame in sse.seen]
    assert len(received) == 5
    await sse.close()


async def test_a_stream_that_starts_now_can_be_resumed_before_its_first_event(cell: Cell) -> None:
    await cell.publish(events.status_running(), events.message("old"))
    async with cell.connected() as opened:
        (ping,) = await _until(opened, "ping")
    assert ping == {"event": "ping", "id": "2", "data": {"type": "ping"}}
    await cell.publish(events.message("missed"))
    async with cell.connected(f"after={ping['id']}") as opened:
        (missed,) = await _until(opened, "agent.message")
    assert missed["id"] == "3"


async def test_a_stream_resumes_in_the_middle_of_a_message(cell: Cell) -> None:
    turn = TurnPublisher(cell.live, OWNER, cell.session_id)
    async with cell.connected(f"after=0&{DELTAS}") as opened:
        await turn.publish(cell.log.append(cell.session_id, events.status_running()))
        preview = turn.preview("agent.message")
        preview.write("One ")
        received = await _until(opened, "event_delta")
    preview.write("two")
    turn.flush()
    async with cell.connected(f"after={received[-1]['id']}&{DELTAS}") as opened:
        rest = await _until(opened, "event_delta")
    assert [frame["event"] for frame in rest] == ["event_start", "event_delta"]
    assert rest[-1]["data"]["delta"]["content"]["text"] == "two"


async def test_a_client_that_does_not_read_is_served_from_the_log_later(cell: Cell) -> None:
    """Its queue fills up and is discarded. No other client waits for it, and it receives every position in the end."""
    count = 200
    async with cell.connected("after=0", max_queue=1) as slow, cell.connected("after=0") as quick:
        await cell.publish(events.status_running())
        assert (await _until(quick, "session.status_running"))[-1]["id"] == "1"
        reading = asyncio.create_task(_until(quick, "session.status_idle"))
        for _ in range(count):
            await cell.publish(events.message(LARGE))
            await asyncio.sleep(0)
        await cell.publish(events.status_idle({"type": "end_turn"}))
        assert len(await reading) == count + 1
        (channel,) = cell.hub._channels.values()
        assert any(subscriber.behind for subscriber in channel.subscribers)
        assert all(subscriber._size + subscriber._taken <= 512 * 1024 for subscriber in channel.subscribers)
        received = await _until(slow, "session.status_idle")
    assert [frame["id"] for frame in received] == [str(number) for number in range(1, count + 3)]


async def test_a_websocket_is_closed_when_its_key_is_revoked(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_revocation, "CHECK_SECONDS", 0.05)
    async with cell.connected() as opened:
        await _until(opened, "ping")
        cell.api.keys.failure = Unauthenticated("The API key is not known.")
        await _until(opened, "error")
        async with asyncio.timeout(30):
            await opened.wait_closed()
    assert opened.close_code == 1008
