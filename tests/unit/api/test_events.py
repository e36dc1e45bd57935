"""Events: sending, listing, and the stream at the level of an ASGI server."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from anthropic.types.beta.sessions import BetaManagedAgentsSendSessionEvents, BetaManagedAgentsSessionEvent
from pydantic import TypeAdapter
from starlette.types import Message

from footplate.api.wire.response_models import SentEvents
from footplate.domain.errors import Unavailable
from footplate.domain.ports.api import Cursor
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.turns import WhenBusy

from .conftest import Api
from .sdk_validation import validate_strictly

TEXT = [{"type": "text", "text": "hello"}]


@pytest.fixture
async def path(sdk: AsyncAnthropic) -> str:
    agent = await sdk.beta.agents.create(name="Coder", model="m")
    environment = await sdk.beta.environments.create(name="env")
    session = await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    return f"/v1/sessions/{session.id}"


async def test_sent_events_are_returned_with_ids(http: httpx2.AsyncClient, path: str, api: Api) -> None:
    sent = await http.post(
        f"{path}/events",
        json={
            "events": [
                {"type": "user.message", "content": TEXT},
                {"type": "user.interrupt"},
                {"type": "user.custom_tool_result", "custom_tool_use_id": "sevt_1"},
            ]
        },
    )
    assert sent.status_code == 200, sent.text
    validate_strictly(BetaManagedAgentsSendSessionEvents, sent.json())
    SentEvents.model_validate(sent.json())
    data = sent.json()["data"]
    assert [event["type"] for event in data] == ["user.message", "user.interrupt", "user.custom_tool_result"]
    assert data[0]["content"] == TEXT
    assert data[0]["processed_at"] is None
    assert data[2]["is_error"] is False
    assert len(api.world.accepted[-1].positions) == 3


async def test_footplates_own_fields_reach_the_input(http: httpx2.AsyncClient, path: str, api: Api) -> None:
    event = {
        "type": "user.message",
        "content": TEXT,
        "when_busy": "steer",
        "overrides": {"model": "openai:gpt-5", "limits": {"max_iterations": 2}, "system": "Short."},
        "context": {"ticket": 5},
    }
    sent = await http.post(f"{path}/events", json={"events": [event]})
    assert sent.status_code == 200, sent.text
    given = api.world.inputs[-1]
    assert given.when_busy is WhenBusy.STEER
    assert given.overrides == {
        "model": {"id": "openai:gpt-5", "speed": "standard"},
        "limits": {"max_iterations": 2},
        "system": "Short.",
    }
    assert given.context == {"ticket": 5}
    assert given.body == {"content": TEXT}


async def test_images_and_documents_reach_the_input(http: httpx2.AsyncClient, path: str, api: Api) -> None:
    content = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": "T"},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
    ]
    sent = await http.post(f"{path}/events", json={"events": [{"type": "user.message", "content": content}]})
    assert sent.status_code == 200, sent.text
    validate_strictly(BetaManagedAgentsSendSessionEvents, sent.json())
    assert api.world.inputs[-1].body == {"content": content}


def _message(*blocks: Any) -> dict[str, Any]:
    return {"type": "user.message", "content": list(blocks)}


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"type": "user.tool_confirmation", "tool_use_id": "x", "result": "maybe"}, "events.0.result"),
        ({"type": "user.define_outcome", "description": "x"}, "events.0.type"),
        ({"type": "user.tool_result", "tool_use_id": "x"}, "events.0.type"),
        ({"type": "system.message", "content": TEXT}, "events.0.type"),
        ({"type": "user.message"}, "events.0.content"),
        ({"type": "user.interrupt", "session_thread_id": "sthr_1"}, "events.0.session_thread_id"),
        ({"type": "user.interrupt", "when_busy": "queue"}, "events.0.when_busy"),
        ({**_message(*TEXT), "when_busy": "shout"}, "events.0.when_busy"),
        ({**_message(*TEXT), "overrides": {"tools": []}}, "events.0.overrides.tools"),
        (_message({"type": "text", "text": ""}), "events.0.content"),
        (_message({"type": "redacted"}), "events.0.content.0.type"),
        (
            {
                "type": "user.custom_tool_result",
                "custom_tool_use_id": "x",
                "content": [{"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}],
            },
            "events.0.content.0.source.type",
        ),
        (
            _message({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "%%"}}),
            "events.0.content.0.source.data",
        ),
        (
            _message({"type": "document", "source": {"type": "content", "content": []}}),
            "events.0.content.0.source.type",
        ),
    ],
)
async def test_an_invalid_event_is_refused_by_field(
    http: httpx2.AsyncClient, path: str, api: Api, event: Any, field: str
) -> None:
    response = await http.post(f"{path}/events", json={"events": [event]})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["field"] == field
    assert api.world.inputs == []


async def test_events_are_listed_in_both_orders(sdk: AsyncAnthropic, http: httpx2.AsyncClient, path: str) -> None:
    session_id = path.rsplit("/", 1)[1]
    for number in range(5):
        text = [{"type": "text", "text": str(number)}]
        await http.post(f"{path}/events", json={"events": [{"type": "user.message", "content": text}]})
    await http.post(f"{path}/events", json={"events": [{"type": "user.interrupt"}]})
    body = (await http.get(f"{path}/events")).json()
    for event in body["data"]:
        TypeAdapter(BetaManagedAgentsSessionEvent).validate_python(event)
    everything = [event["id"] for event in body["data"]]
    assert len(everything) == 6
    assert [event.id async for event in sdk.beta.sessions.events.list(session_id, limit=2)] == everything
    newest = [event.id async for event in sdk.beta.sessions.events.list(session_id, limit=4, order="desc")]
    assert newest == everything[::-1]
    only = [event.type async for event in sdk.beta.sessions.events.list(session_id, types=["user.interrupt"])]
    assert only == ["user.interrupt"]


class Connection:
    """One client of a stream, which calls the application as an ASGI server does."""

    def __init__(self, api: Api, path: str, query: str = "", headers: dict[str, str] | None = None) -> None:
        self.sent: list[Message] = []
        self.gone = asyncio.Event()
        self.changed = asyncio.Event()
        given = {"authorization": "Bearer secret-a", "accept": "application/json", **(headers or {})}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "path": f"{path}/events/stream",
            "raw_path": b"",
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "http",
            "server": ("test", 80),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        self.task = asyncio.create_task(api.app(scope, self._receive, self._send))
        self._requested = False

    async def _receive(self) -> Message:
        if not self._requested:
            self._requested = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)
        self.changed.set()

    async def messages(self, count: int) -> list[Message]:
        while len(self.sent) < count:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 5)
        return self.sent

    async def disconnect(self) -> None:
        self.gone.set()
        await asyncio.wait_for(self.task, 30)


async def _silence() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b"never"


async def test_a_stream_responds_before_the_first_event(api: Api, path: str) -> None:
    api.tails.forever = _silence
    connection = Connection(api, path)
    start = (await connection.messages(1))[0]
    headers = dict(start["headers"])
    assert start["status"] == 200
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert headers[b"cache-control"] == b"no-store"
    assert headers[b"request-id"].startswith(b"req_")
    assert len(connection.sent) == 1
    await connection.disconnect()


@pytest.mark.requirement("S2")
async def test_a_stream_sends_frames_and_keep_alives(api: Api, path: str) -> None:
    api.tails.chunks = [b"event: x\nid: 1\ndata: {}\n\n", b""]
    api.tails.forever = _silence
    before = asyncio.all_tasks()
    connection = Connection(api, path)
    sent = await connection.messages(3)
    assert [message["body"] for message in sent[1:]] == [api.tails.chunks[0], b": keep-alive\n\n"]
    await connection.disconnect()
    assert api.tails.closed == 1
    assert asyncio.all_tasks() <= before


async def test_a_stream_ends_with_its_source(api: Api, path: str) -> None:
    api.tails.chunks = [b"event: session.deleted\nid: 9\ndata: {}\n\n"]
    connection = Connection(api, path)
    await asyncio.wait_for(connection.task, 30)
    assert connection.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


@pytest.mark.parametrize("failure", [Unavailable("The database does not answer."), RuntimeError("secret detail")])
async def test_a_broken_stream_ends_with_an_error_event(api: Api, path: str, failure: Exception) -> None:
    api.tails.failure = failure
    connection = Connection(api, path)
    await asyncio.wait_for(connection.task, 30)
    last = connection.sent[-1]
    assert last["body"].startswith(b"event: error\ndata: {")
    assert last["more_body"] is False
    assert b"secret" not in last["body"]


@pytest.mark.parametrize(
    ("query", "headers", "cursor"),
    [
        ("", {}, None),
        ("after=7", {}, Cursor(7)),
        ("after=7", {"last-event-id": "9.sevt_1.12"}, Cursor(9, "sevt_1", 12)),
    ],
)
async def test_a_stream_starts_at_its_cursor(
    api: Api, path: str, query: str, headers: dict[str, str], cursor: Cursor | None
) -> None:
    await Connection(api, path, query, headers).task
    assert api.tails.requests == [("org_a", path.rsplit("/", 1)[1], cursor, frozenset())]


async def test_a_stream_asks_for_the_requested_deltas(api: Api, path: str) -> None:
    await Connection(api, path, "event_deltas[]=agent.message&event_deltas[]=agent.thinking").task
    assert api.tails.requests[0][3] == {"agent.message", "agent.thinking"}


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [
        ("event_deltas[]=agent.tool_use", {}, "event_deltas[].0"),
        ("after=banana", {}, "after"),
        ("", {"last-event-id": "-1"}, "Last-Event-ID"),
        ("afetr=1", {}, "afetr"),
    ],
)
async def test_an_invalid_stream_request_is_refused(
    http: httpx2.AsyncClient, api: Api, path: str, query: str, headers: dict[str, str], field: str
) -> None:
    response = await http.get(f"{path}/events/stream?{query}", headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["field"] == field
    assert api.tails.requests == []


async def test_the_stream_of_an_unknown_session_is_not_found(http: httpx2.AsyncClient, api: Api) -> None:
    assert (await http.get("/v1/sessions/sesn_none/events/stream")).status_code == 404
    assert api.tails.requests == []


async def test_types_of_footplate_are_listed_on_request(http: httpx2.AsyncClient, path: str, api: Api) -> None:
    session_id = path.rsplit("/", 1)[1]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    api.world.log[session_id] = [
        Position(1, Event("step.created", {"step_id": "step_1"}), now, now),
        Position(2, Event("step.ended", {"step_id": "step_1"}), now, now),
    ]
    listed = await http.get(f"{path}/events", params={"types[]": "step.ended", "extensions": "true"})
    assert [event["type"] for event in listed.json()["data"]] == ["step.ended"]
    refused = await http.get(f"{path}/events", params={"types[]": "step.ended"})
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "types[]")
