"""The stream over WebSocket: the same frames as SSE, refusals at the handshake, and close codes that tell what to do
next.

It uses a real server on loopback, because the server does the handshake and the closing.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.integration.api.serving import get_port, serve_api
from tests.unit.api.conftest import Api, make_client
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from footplate.api.wire.response_models import Error
from footplate.domain.errors import Unavailable
from footplate.domain.ports.api import Cursor
from footplate.stack.orphan_processes import wait_until
from footplate.stream import sse

pytestmark = pytest.mark.timing

KEY = {"authorization": "Bearer secret-a"}
EVENT = sse.encode_event(7, {"id": "sevt_1", "type": "agent.message", "content": []})
DELETED = sse.encode_event(9, {"id": "sevt_9", "type": "session.deleted"})


async def _silence() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b"never"


@pytest.fixture
async def server(api: Api) -> AsyncIterator[str]:
    """The address of the server, as `host:port`."""
    async with serve_api(api.app) as running:
        yield f"127.0.0.1:{get_port(running)}"


@pytest.fixture
async def session_id(api: Api) -> str:
    async with make_client(api.app) as http:
        agent = (await http.post("/v1/agents", json={"name": "a", "model": "m"})).json()["id"]
        environment = (await http.post("/v1/environments", json={"name": "e"})).json()["id"]
        created = await http.post("/v1/sessions", json={"agent": agent, "environment_id": environment})
    found: str = created.json()["id"]
    return found


def _connect(server: str, session_id: str, query: str = "", **options: Any) -> connect:
    return connect(f"ws://{server}/v1/sessions/{session_id}/ws{query}", proxy=None, additional_headers=KEY, **options)


async def _receive_all(socket: ClientConnection) -> tuple[list[dict[str, Any]], int]:
    received = []
    with suppress(ConnectionClosed):
        async with asyncio.timeout(30):
            while True:
                received.append(json.loads(await socket.recv()))
    assert socket.close_code is not None
    return received, socket.close_code


async def _refused(server: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    with pytest.raises(InvalidStatus) as caught:
        await connect(f"ws://{server}{path}", proxy=None, additional_headers=KEY if headers is None else headers)
    response = caught.value.response
    body = json.loads(response.body)
    Error.model_validate(body)
    assert response.headers["request-id"] == body.pop("request_id")
    return response.status_code, body["error"]


async def test_websocket_messages_are_the_frames(api: Api, server: str, session_id: str) -> None:
    api.tails.chunks = [EVENT + sse.encode_preview_start(7, "sevt_2", "agent.message"), b"", DELETED]
    async with _connect(server, session_id) as socket:
        received, code = await _receive_all(socket)
    assert received == [
        {"event": "agent.message", "id": "7", "data": {"id": "sevt_1", "type": "agent.message", "content": []}},
        {
            "event": "event_start",
            "id": "7.sevt_2.0",
            "data": {"type": "event_start", "event": {"id": "sevt_2", "type": "agent.message"}},
        },
        {"event": "session.deleted", "id": "9", "data": {"id": "sevt_9", "type": "session.deleted"}},
    ]
    assert code == 1000


@pytest.mark.parametrize(
    ("query", "headers", "cursor"),
    [
        ("", {}, None),
        ("?after=7", {}, Cursor(7)),
        ("?after=7", {"last-event-id": "9.sevt_1.12"}, Cursor(9, "sevt_1", 12)),
    ],
)
async def test_the_cursor_is_read_from_query_and_header(
    api: Api, server: str, session_id: str, query: str, headers: dict[str, str], cursor: Cursor | None
) -> None:
    url = f"ws://{server}/v1/sessions/{session_id}/ws{query}"
    async with connect(url, proxy=None, additional_headers={**KEY, **headers}) as socket:
        await _receive_all(socket)
    assert api.tails.requests == [("org_a", session_id, cursor, frozenset())]


async def test_previews_are_requested_in_the_query(api: Api, server: str, session_id: str) -> None:
    async with _connect(server, session_id, "?event_deltas[]=agent.message") as socket:
        await _receive_all(socket)
    assert api.tails.requests[0][3] == {"agent.message"}


@pytest.mark.parametrize("headers", [KEY, {"x-api-key": "secret-a"}])
async def test_a_key_in_a_header_is_accepted(server: str, session_id: str, headers: dict[str, str]) -> None:
    url = f"ws://{server}/v1/sessions/{session_id}/ws"
    async with connect(url, proxy=None, additional_headers=headers) as socket:
        assert socket.response is not None
        assert socket.response.headers["request-id"].startswith("req_")


async def test_a_browser_offers_its_key_as_a_subprotocol(server: str, session_id: str) -> None:
    url = f"ws://{server}/v1/sessions/{session_id}/ws"
    offered = [Subprotocol("footplate.v1"), Subprotocol("footplate.key.secret-a")]
    async with connect(url, proxy=None, subprotocols=offered) as socket:
        assert socket.subprotocol == "footplate.v1"
    wrong = [Subprotocol("footplate.v1"), Subprotocol("footplate.key.wrong")]
    with pytest.raises(InvalidStatus) as caught:
        await connect(url, proxy=None, subprotocols=wrong)
    assert caught.value.response.status_code == 401


async def test_requests_are_refused_at_the_handshake(api: Api, server: str, session_id: str) -> None:
    path = f"/v1/sessions/{session_id}/ws"
    status, error = await _refused(server, path, {})
    assert (status, error["type"]) == (401, "authentication_error")
    status, error = await _refused(server, f"{path}?after=banana")
    assert (status, error["field"]) == (400, "after")
    status, error = await _refused(server, f"{path}?event_deltas[]=nothing")
    assert (status, error["field"]) == (400, "event_deltas[].0")
    assert (await _refused(server, "/v1/sessions/%00/ws"))[0] == 404
    assert (await _refused(server, "/v1/agents"))[0] == 404
    assert api.tails.requests == []


async def test_another_organisations_session_does_not_exist(server: str, session_id: str) -> None:
    foreign = {"authorization": "Bearer secret-b"}
    seen = await _refused(server, f"/v1/sessions/{session_id}/ws", foreign)
    unknown = await _refused(server, f"/v1/sessions/{session_id[:-1]}/ws", foreign)
    assert seen[0] == 404
    assert json.dumps(seen).replace(session_id, "ID") == json.dumps(unknown).replace(session_id[:-1], "ID")


async def test_a_failure_at_the_handshake_is_an_error_response(api: Api, server: str, session_id: str) -> None:
    api.keys.failure = Unavailable("The database does not answer.")
    assert (await _refused(server, f"/v1/sessions/{session_id}/ws"))[0] == 503
    api.keys.failure = RuntimeError("secret detail")
    status, error = await _refused(server, f"/v1/sessions/{session_id}/ws")
    assert status == 500
    assert "secret" not in json.dumps(error)


@pytest.mark.parametrize("message_sent", ["{}", "", "not json", "\x00", b"", b"\xff\xfe", "x" * 4000])
async def test_a_message_from_the_client_closes_the_connection(
    api: Api, server: str, session_id: str, message_sent: str | bytes
) -> None:
    api.tails.forever = _silence
    async with _connect(server, session_id) as socket:
        await socket.send(message_sent)
        received, code = await _receive_all(socket)
    (message,) = received
    assert message["event"] == "error"
    Error.model_validate(message["data"])
    assert "POST" in message["data"]["error"]["help"]
    assert code == 1003
    assert api.tails.closed == 1


async def test_a_message_that_is_too_large_is_not_read(api: Api, server: str, session_id: str) -> None:
    api.tails.forever = _silence
    async with _connect(server, session_id) as socket:
        await socket.send("x" * 70_000)
        assert (await _receive_all(socket))[1] == 1009
    await _until(lambda: api.tails.closed == 1)


async def test_the_end_of_a_stream_asks_the_client_to_reconnect(api: Api, server: str, session_id: str) -> None:
    api.tails.chunks = [EVENT]
    async with _connect(server, session_id) as socket:
        received, code = await _receive_all(socket)
    assert [message["id"] for message in received] == ["7"]
    assert code == 1012


@pytest.mark.parametrize("failure", [Unavailable("The database does not answer."), RuntimeError("secret detail")])
async def test_a_broken_stream_sends_an_error(api: Api, server: str, session_id: str, failure: Exception) -> None:
    api.tails.chunks = [EVENT]
    api.tails.failure = failure
    async with _connect(server, session_id) as socket:
        received, code = await _receive_all(socket)
    assert [message["event"] for message in received] == ["agent.message", "error"]
    assert "secret" not in json.dumps(received)
    assert code == 1011


async def test_a_disconnect_ends_all_tasks(api: Api, server: str, session_id: str) -> None:
    api.tails.forever = _silence
    before = len(asyncio.all_tasks())
    for politely in (True, False):
        socket = await _connect(server, session_id)
        if politely:
            await socket.close()
        else:
            socket.transport.abort()
    await _until(lambda: api.tails.closed == 2)
    await _until(lambda: len(asyncio.all_tasks()) == before)


async def test_plain_http_is_refused_with_an_explanation(api: Api, session_id: str) -> None:
    async with make_client(api.app) as http:
        response = await http.get(f"/v1/sessions/{session_id}/ws")
        assert (response.status_code, response.json()["error"]["field"]) == (400, "upgrade")
    async with make_client(api.app, "secret-b") as stranger:
        assert (await stranger.get(f"/v1/sessions/{session_id}/ws")).status_code == 404


async def _until(holds: Callable[[], bool]) -> None:
    async def held() -> bool:
        return holds()

    assert await wait_until(held, 30)
