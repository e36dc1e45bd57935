"""Requests are retried without taking effect twice, and errors are helpful exceptions."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest
from tests.integration.client.server import Server, answer, failure

from footplate.client import (
    ApiError,
    AsyncFootplate,
    Busy,
    ClientError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    ServerFailed,
    Unauthenticated,
    Unreachable,
)
from footplate.stack.ports import free_port

pytestmark = pytest.mark.timing

DELETED = {"id": "sesn_1", "type": "session_deleted"}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(server.url, "secret", patience=5) as made:
        yield made


async def test_every_try_of_a_change_carries_one_key(server: Server, client: AsyncFootplate) -> None:
    server.answers = [b"", answer(failure(503), 503), answer(DELETED), answer(DELETED)]
    assert (await client.sessions.delete("sesn_1")).id == "sesn_1"
    await client.sessions.delete("sesn_1")
    keys = [asked.headers["idempotency-key"] for asked in server.asked]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert {asked.headers["x-api-key"] for asked in server.asked} == {"secret"}


async def test_an_answer_cut_off_is_asked_for_again(server: Server, client: AsyncFootplate) -> None:
    whole = answer(DELETED)
    server.answers = [whole[: len(whole) // 2], whole[:-1], whole]
    assert (await client.sessions.delete("sesn_1")).type == "session_deleted"
    assert len(server.asked) == 3


async def test_reading_needs_no_key(server: Server, client: AsyncFootplate) -> None:
    server.answers = [answer({"data": [], "next_page": None})]
    await client.sessions.list(limit=3, statuses=["idle", "running"]).page()
    assert "idempotency-key" not in server.asked[0].headers
    assert server.asked[0].path == "/v1/sessions?limit=3&statuses%5B%5D=idle&statuses%5B%5D=running"


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
    server: Server, client: AsyncFootplate, status: int, kind: type[ApiError]
) -> None:
    server.answers = [answer(failure(status, code="the_code", help="Do this.", field="name"), status)]
    with pytest.raises(kind) as caught:
        await client.agents.create(name="a", model="m")
    error = caught.value
    assert (error.status, error.code, error.title, error.message) == (status, "the_code", "A title", "It says why.")
    assert (error.help, error.field, error.request_id) == ("Do this.", "name", f"req_{status}")
    assert len(server.asked) == 1


async def test_a_merge_that_fails_tells_each_file(server: Server, client: AsyncFootplate) -> None:
    told = {"path": "a.py", "reason": "both changed the same lines", "lines": [3], "last_commit": "abc"}
    server.answers = [answer(failure(409, code="merge_conflict", conflicts=[told]), 409)]
    with pytest.raises(Conflict) as caught:
        await client.sessions.merge("sesn_1")
    assert [conflict.wire() for conflict in caught.value.conflicts] == [told]


async def test_patience_ends(server: Server) -> None:
    server.answers = [answer(DELETED), *([answer(failure(503), 503)] * 50)]
    async with AsyncFootplate(server.url, "k", patience=1) as client:
        await client.sessions.delete("sesn_1")
        with pytest.raises(Busy):
            await client.sessions.delete("sesn_1")
    assert len(server.asked) > 2


async def test_an_address_where_nobody_ever_answered_is_given_up_soon() -> None:
    async with AsyncFootplate(f"http://127.0.0.1:{free_port()}", "k", patience=300) as client:
        started = time.monotonic()
        with pytest.raises(Unreachable, match="does not respond"):
            await client.sessions.retrieve("sesn_1")
    assert time.monotonic() - started < 100


async def test_somebody_elses_server_is_recognised(server: Server, client: AsyncFootplate) -> None:
    server.answers = [answer(["not", "ours"]), answer("a page", 404)]
    with pytest.raises(ClientError, match="not from Footplate"):
        await client.sessions.retrieve("sesn_1")
    with pytest.raises(NotFound, match="status 404"):
        await client.sessions.retrieve("sesn_1")


async def test_cancelling_ends_the_tries(server: Server, client: AsyncFootplate) -> None:
    waiting = asyncio.create_task(client.sessions.delete("sesn_1"))
    await asyncio.sleep(0.2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_list_is_read_to_its_end(server: Server, client: AsyncFootplate) -> None:
    def page(number: int, following: str | None) -> bytes:
        event = {"id": f"sevt_{number}", "type": "agent.message", "processed_at": None}
        return answer({"data": [event], "next_page": following})

    server.answers = [page(1, "two"), page(2, "three"), page(3, None)]
    found = [event.id async for event in client.events.list("sesn_1", order="desc")]
    assert found == ["sevt_1", "sevt_2", "sevt_3"]
    assert [asked.path.partition("?")[2] for asked in server.asked] == [
        "order=desc",
        "order=desc&page=two",
        "order=desc&page=three",
    ]


async def test_what_is_sent_and_what_comes_back(server: Server, client: AsyncFootplate) -> None:
    taken = {"id": "sevt_1", "type": "user.message", "content": [{"type": "text", "text": "Hi"}], "processed_at": None}
    server.answers = [answer({"data": [{**taken, "something_new": [1]}]})]
    event = await client.events.send_text("sesn_1", "Hi", when_busy="steer")
    assert json.loads(server.asked[0].body) == {
        "events": [{"type": "user.message", "content": [{"type": "text", "text": "Hi"}], "when_busy": "steer"}]
    }
    assert (event.id, event.text, event.processed_at) == ("sevt_1", "Hi", None)
    assert event.wire() == {**taken, "something_new": [1]}
