"""The stream across reconnects: each event once, in order, whatever fails in between."""

from collections.abc import AsyncIterator

import pytest
from tests.integration.client.server import Server, answer, cursors, event, failure, stream

from footplate.client import AsyncFootplate, ClientError, Event, NotFound, StreamLost, Unreachable

END = event(99, "session.deleted", id="sevt_99")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(server.url, "secret", patience=5) as made:
        yield made


async def _all(client: AsyncFootplate, after: str | None = "0") -> list[Event]:
    return [each async for each in client.events.stream("sesn_1", after=after)]


def _start(position: str) -> bytes:
    return event(position, "event_start", event={"id": "sevt_5", "type": "agent.message"})


def _delta(position: str, text: str) -> bytes:
    content = {"type": "text", "text": text}
    return event(position, "event_delta", event_id="sevt_5", delta={"type": "content_delta", "content": content})


@pytest.mark.requirement("O10")
async def test_a_lost_connection_goes_on_behind_the_last_event(server: Server, client: AsyncFootplate) -> None:
    heard: list[ClientError | None] = []
    server.answers = [
        stream(event(1, "user.message", id="a"), event(2, "agent.message", id="b"), cut=True),
        b"",
        stream(event(3, "agent.message", id="c")),
        stream(event(4, "agent.message", id="d"), END),
    ]
    found = [each async for each in client.events.stream("sesn_1", after="0", on_connection=heard.append)]
    assert [each.position for each in found] == ["1", "2", "3", "4", "99"]
    assert cursors(server.asked) == ["0", "2", "2", "3"]
    assert [error is None for error in heard].count(True) == 2
    assert isinstance(heard[0], Unreachable)


async def test_a_preview_goes_on_without_a_second_start(server: Server, client: AsyncFootplate) -> None:
    server.answers = [
        stream(_start("4.sevt_5.0"), _delta("4.sevt_5.3", "One"), cut=True),
        stream(_start("4.sevt_5.3"), _delta("4.sevt_5.7", " two"), event(5, "agent.message", id="sevt_5"), END),
    ]
    found = await _all(client)
    assert [each.type for each in found[:-1]] == ["event_start", "event_delta", "event_delta", "agent.message"]
    assert "".join(each.text for each in found if each.type == "event_delta") == "One two"
    assert cursors(server.asked) == ["0", "4.sevt_5.3"]


async def test_a_preview_that_starts_over_says_so(server: Server, client: AsyncFootplate) -> None:
    """The live text was lost with its Redis. The client receives all of it again, after a new start."""
    server.answers = [
        stream(_start("4.sevt_5.0"), _delta("4.sevt_5.3", "One"), cut=True),
        stream(_start("4.sevt_5.0"), _delta("4.sevt_5.7", "One two"), END),
    ]
    types = [each.type for each in await _all(client)]
    assert types == ["event_start", "event_delta", "event_start", "event_delta", "session.deleted"]


async def test_a_stream_whose_place_is_not_known_does_not_go_on_with_a_gap(
    server: Server, client: AsyncFootplate
) -> None:
    server.answers = [stream(b": keep-alive\n\n", cut=True), stream(END)]
    with pytest.raises(StreamLost) as caught:
        await _all(client, after=None)
    assert "after" in caught.value.help


async def test_a_place_alone_is_enough_to_go_on(server: Server, client: AsyncFootplate) -> None:
    server.answers = [stream(b"id: 41\n\n", cut=True), stream(event(42, "agent.message", id="a"), END)]
    assert [each.position for each in await _all(client, after=None)] == ["42", "99"]
    assert cursors(server.asked) == [None, "41"]


async def test_a_stream_that_breaks_on_the_servers_side_goes_on(server: Server, client: AsyncFootplate) -> None:
    broke = b'event: error\ndata: {"type": "error", "error": {"type": "api_error", "message": "broke"}}\n\n'
    server.answers = [stream(event(7, "agent.message", id="a"), broke), stream(END)]
    assert [each.position for each in await _all(client)] == ["7", "99"]


async def test_a_session_that_is_gone_ends_it(server: Server, client: AsyncFootplate) -> None:
    server.answers = [stream(event(7, "agent.message", id="a"), cut=True), answer(failure(404, code="not_found"), 404)]
    with pytest.raises(NotFound):
        await _all(client)


async def test_a_server_that_stays_away_is_given_up(server: Server) -> None:
    server.answers = [stream(event(7, "agent.message", id="a"))]
    async with AsyncFootplate(server.url, "k", patience=1) as client:
        with pytest.raises(Unreachable):
            await _all(client)
    assert len(server.asked) > 2


async def test_previews_are_asked_for_by_type(server: Server, client: AsyncFootplate) -> None:
    server.answers = [stream(END), stream(END)]
    _ = [each async for each in client.events.stream("sesn_1", after="3", deltas=())]
    _ = [each async for each in client.events.stream("sesn_1", deltas=("agent.message", "agent.thinking"))]
    queries = [asked.path.partition("?")[2] for asked in server.asked]
    assert queries == ["", "event_deltas%5B%5D=agent.message&event_deltas%5B%5D=agent.thinking"]
