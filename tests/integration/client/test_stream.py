"""The stream across reconnects: each event once, in order, whatever fails in between."""

from collections.abc import AsyncIterator

import pytest
from tests.integration.client.scripted_server import ScriptedServer, cursors, event, failure, json_response, stream

from footplate.client import AsyncFootplate, ClientError, Event, NotFound, StreamLost, Unreachable

END = event(99, "session.deleted", id="sevt_99")


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as running:
        yield running


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(server.url, "secret", patience=5) as made:
        yield made


async def _read_all(client: AsyncFootplate, after: str | None = "0") -> list[Event]:
    return [each async for each in client.events.stream("sesn_1", after=after)]


def _start(position: str) -> bytes:
    return event(position, "event_start", event={"id": "sevt_5", "type": "agent.message"})


def _delta(position: str, text: str) -> bytes:
    content = {"type": "text", "text": text}
    return event(position, "event_delta", event_id="sevt_5", delta={"type": "content_delta", "content": content})


@pytest.mark.requirement("O10")
async def test_a_lost_connection_resumes_after_the_last_event(server: ScriptedServer, client: AsyncFootplate) -> None:
    connection_changes: list[ClientError | None] = []
    server.responses = [
        stream(event(1, "user.message", id="a"), event(2, "agent.message", id="b"), cut=True),
        b"",
        stream(event(3, "agent.message", id="c")),
        stream(event(4, "agent.message", id="d"), END),
    ]
    found = [each async for each in client.events.stream("sesn_1", after="0", on_connection=connection_changes.append)]
    assert [each.position for each in found] == ["1", "2", "3", "4", "99"]
    assert cursors(server.requests) == ["0", "2", "2", "3"]
    assert [error is None for error in connection_changes].count(True) == 2
    assert isinstance(connection_changes[0], Unreachable)


async def test_a_preview_resumes_without_a_second_start(server: ScriptedServer, client: AsyncFootplate) -> None:
    server.responses = [
        stream(_start("4.sevt_5.0"), _delta("4.sevt_5.3", "One"), cut=True),
        stream(_start("4.sevt_5.3"), _delta("4.sevt_5.7", " two"), event(5, "agent.message", id="sevt_5"), END),
    ]
    found = await _read_all(client)
    assert [each.type for each in found[:-1]] == ["event_start", "event_delta", "event_delta", "agent.message"]
    assert "".join(each.text for each in found if each.type == "event_delta") == "One two"
    assert cursors(server.requests) == ["0", "4.sevt_5.3"]


async def test_a_preview_that_restarts_has_a_second_start(server: ScriptedServer, client: AsyncFootplate) -> None:
    """The live text was lost with its Redis. The client receives all of it again, after a new start."""
    server.responses = [
        stream(_start("4.sevt_5.0"), _delta("4.sevt_5.3", "One"), cut=True),
        stream(_start("4.sevt_5.0"), _delta("4.sevt_5.7", "One two"), END),
    ]
    types = [each.type for each in await _read_all(client)]
    assert types == ["event_start", "event_delta", "event_start", "event_delta", "session.deleted"]


async def test_a_stream_without_a_known_position_is_not_resumed(server: ScriptedServer, client: AsyncFootplate) -> None:
    server.responses = [stream(b": keep-alive\n\n", cut=True), stream(END)]
    with pytest.raises(StreamLost) as caught:
        await _read_all(client, after=None)
    assert "after" in caught.value.help


async def test_a_position_without_an_event_is_enough_to_resume(server: ScriptedServer, client: AsyncFootplate) -> None:
    server.responses = [stream(b"id: 41\n\n", cut=True), stream(event(42, "agent.message", id="a"), END)]
    assert [each.position for each in await _read_all(client, after=None)] == ["42", "99"]
    assert cursors(server.requests) == [None, "41"]


async def test_a_stream_that_fails_on_the_server_is_resumed(server: ScriptedServer, client: AsyncFootplate) -> None:
    broke = b'event: error\ndata: {"type": "error", "error": {"type": "api_error", "message": "broke"}}\n\n'
    server.responses = [stream(event(7, "agent.message", id="a"), broke), stream(END)]
    assert [each.position for each in await _read_all(client)] == ["7", "99"]


async def test_a_deleted_session_ends_the_stream(server: ScriptedServer, client: AsyncFootplate) -> None:
    server.responses = [
        stream(event(7, "agent.message", id="a"), cut=True),
        json_response(failure(404, code="not_found"), 404),
    ]
    with pytest.raises(NotFound):
        await _read_all(client)


async def test_an_unreachable_server_ends_the_stream_after_the_timeout(server: ScriptedServer) -> None:
    server.responses = [stream(event(7, "agent.message", id="a"))]
    async with AsyncFootplate(server.url, "k", patience=1) as client:
        with pytest.raises(Unreachable):
            await _read_all(client)
    assert len(server.requests) > 2


async def test_previews_are_requested_by_type(server: ScriptedServer, client: AsyncFootplate) -> None:
    server.responses = [stream(END), stream(END)]
    _ = [each async for each in client.events.stream("sesn_1", after="3", deltas=())]
    _ = [each async for each in client.events.stream("sesn_1", deltas=("agent.message", "agent.thinking"))]
    queries = [request.path.partition("?")[2] for request in server.requests]
    assert queries == ["", "event_deltas%5B%5D=agent.message&event_deltas%5B%5D=agent.thinking"]
