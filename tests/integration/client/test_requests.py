"""Requests are retried without taking effect twice, and errors are helpful exceptions."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest
from tests.integration.client.scripted_server import ScriptedServer, failure, json_response

from footplate.client import (
    ApiError,
    AsyncFootplate,
    Busy,
    ClientError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    RateLimited,
    ServerFailed,
    Unauthenticated,
    Unreachable,
)
from footplate.stack.free_ports import find_free_port

pytestmark = pytest.mark.timing

DELETED = {"id": "sesn_1", "type": "session_deleted"}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as running:
        yield running


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(server.url, "secret", patience=5) as made:
        yield made


async def test_every_attempt_of_a_change_has_the_same_key(server: ScriptedServer, client: AsyncFootplate) -> None:
    server.responses = [b"", json_response(failure(503), 503), json_response(DELETED), json_response(DELETED)]
    assert (await client.sessions.delete("sesn_1")).id == "sesn_1"
    await client.sessions.delete("sesn_1")
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert {asked.headers["x-api-key"] for asked in server.requests} == {"secret"}


async def test_a_truncated_response_is_requested_again(server: ScriptedServer, client: AsyncFootplate) -> None:
    whole = json_response(DELETED)
    server.responses = [whole[: len(whole) // 2], whole[:-1], whole]
    assert (await client.sessions.delete("sesn_1")).type == "session_deleted"
    assert len(server.requests) == 3


async def test_a_read_has_no_idempotency_key(server: ScriptedServer, client: AsyncFootplate) -> None:
    server.responses = [json_response({"data": [], "next_page": None})]
    await client.sessions.list(limit=3, statuses=["idle", "running"]).page()
    assert "idempotency-key" not in server.requests[0].headers
    assert server.requests[0].path == "/v1/sessions?limit=3&statuses%5B%5D=idle&statuses%5B%5D=running"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequest),
        (401, Unauthenticated),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (413, InvalidRequest),
        (500, ServerFailed),
    ],
)
async def test_a_refusal_is_raised_at_once(
    server: ScriptedServer, client: AsyncFootplate, status: int, kind: type[ApiError]
) -> None:
    server.responses = [json_response(failure(status, code="the_code", help="Do this.", field="name"), status)]
    with pytest.raises(kind) as caught:
        await client.agents.create(name="a", model="m")
    error = caught.value
    assert (error.status, error.code, error.title, error.message) == (status, "the_code", "A title", "It says why.")
    assert (error.help, error.field, error.request_id) == ("Do this.", "name", f"req_{status}")
    assert len(server.requests) == 1


async def test_a_failed_merge_reports_each_file(server: ScriptedServer, client: AsyncFootplate) -> None:
    conflict_body = {
        "path": "a.py",
        "reason": "the same lines were changed on both sides",
        "lines": [3],
        "last_commit": "abc",
    }
    server.responses = [json_response(failure(409, code="merge_conflict", conflicts=[conflict_body]), 409)]
    with pytest.raises(Conflict) as caught:
        await client.sessions.merge("sesn_1")
    assert [conflict.wire() for conflict in caught.value.conflicts] == [conflict_body]


async def test_retries_end_after_the_timeout(server: ScriptedServer) -> None:
    server.responses = [json_response(DELETED), *([json_response(failure(503), 503)] * 50)]
    async with AsyncFootplate(server.url, "k", patience=1) as client:
        await client.sessions.delete("sesn_1")
        with pytest.raises(Busy):
            await client.sessions.delete("sesn_1")
    assert len(server.requests) > 2


async def test_an_address_that_never_responded_fails_soon() -> None:
    async with AsyncFootplate(f"http://127.0.0.1:{find_free_port()}", "k", patience=300) as client:
        started = time.monotonic()
        with pytest.raises(Unreachable, match="does not respond"):
            await client.sessions.retrieve("sesn_1")
    assert time.monotonic() - started < 100


async def test_a_server_that_is_not_footplate_is_recognised(server: ScriptedServer, client: AsyncFootplate) -> None:
    server.responses = [json_response(["not", "ours"]), json_response("a page", 404)]
    with pytest.raises(ClientError, match="not a Footplate response"):
        await client.sessions.retrieve("sesn_1")
    with pytest.raises(NotFound, match="status 404"):
        await client.sessions.retrieve("sesn_1")


async def test_cancelling_ends_the_retries(server: ScriptedServer, client: AsyncFootplate) -> None:
    waiting = asyncio.create_task(client.sessions.delete("sesn_1"))
    await asyncio.sleep(0.2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_list_is_read_to_its_end(server: ScriptedServer, client: AsyncFootplate) -> None:
    def page(number: int, following: str | None) -> bytes:
        event = {"id": f"sevt_{number}", "type": "agent.message", "processed_at": None}
        return json_response({"data": [event], "next_page": following})

    server.responses = [page(1, "two"), page(2, "three"), page(3, None)]
    found = [event.id async for event in client.events.list("sesn_1", order="desc")]
    assert found == ["sevt_1", "sevt_2", "sevt_3"]
    assert [request.path.partition("?")[2] for request in server.requests] == [
        "order=desc",
        "order=desc&page=two",
        "order=desc&page=three",
    ]


async def test_a_message_is_sent_and_its_event_returned(server: ScriptedServer, client: AsyncFootplate) -> None:
    taken = {"id": "sevt_1", "type": "user.message", "content": [{"type": "text", "text": "Hi"}], "processed_at": None}
    server.responses = [json_response({"data": [{**taken, "something_new": [1]}]})]
    event = await client.events.send_text("sesn_1", "Hi", when_busy="steer")
    assert json.loads(server.requests[0].body) == {
        "events": [{"type": "user.message", "content": [{"type": "text", "text": "Hi"}], "when_busy": "steer"}]
    }
    assert (event.id, event.text, event.processed_at) == ("sevt_1", "Hi", None)
    assert event.wire() == {**taken, "something_new": [1]}


async def test_a_limited_request_is_reported_and_repeated(server: ScriptedServer) -> None:
    """Also the first one: the server responds, so it is not given up after a second."""
    reported: list[RateLimited] = []
    limited = json_response(failure(429), 429)
    server.responses = [limited, limited, limited, limited, limited, json_response(DELETED)]
    async with AsyncFootplate(server.url, "secret", patience=30, on_rate_limit=reported.append) as client:
        assert (await client.sessions.delete("sesn_1")).id == "sesn_1"
    assert [error.status for error in reported] == [429] * 5
    assert len({request.headers["idempotency-key"] for request in server.requests}) == 1
