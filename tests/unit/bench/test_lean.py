"""The measuring client reads server-sent events wherever the network cuts them, and rejects error responses."""

import asyncio

import pytest
from bench.prove.figure import NotHeld
from bench.support.minimal_client import Frames, _read_headers, validate_frames
from bench.support.speed.measurement import quantile

EVENTS = (
    b": keep-alive\n\n"
    b'event: session.status_running\nid: 3\ndata: {"id":"sevt_1","type":"session.status_running",'
    b'"processed_at":"2026-01-01T00:00:00Z"}\n\n'
    b'event: session.status_idle\nid: 4\ndata: {"id":"sevt_2","type":"session.status_idle",'
    b'"processed_at":"2026-01-01T00:00:00Z","stop_reason":{"type":"end_turn"}}\n\n'
)


def chunked(body: bytes, size: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    for at in range(0, len(body), size):
        piece = body[at : at + size]
        reader.feed_data(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    reader.feed_data(b"0\r\n\r\n")
    reader.feed_eof()
    return reader


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
async def test_frames_are_complete_wherever_they_are_cut(size: int) -> None:
    found = await Frames(chunked(EVENTS, size)).until_idle()
    assert [(frame.event, frame.id) for frame in found] == [
        ("session.status_running", "3"),
        ("session.status_idle", "4"),
    ]
    assert validate_frames(found) == 2


async def test_a_stream_that_ends_early_fails_the_proof() -> None:
    with pytest.raises(NotHeld, match="ended before"):
        await Frames(chunked(EVENTS, 64)).until("agent.message")


async def test_an_error_fails_the_proof() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone")
    with pytest.raises(NotHeld, match=r"404.*gone"):
        await _read_headers(reader)


def test_a_quantile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert quantile(values, 0.95) == 96
    assert quantile(values, 1.0) == 100
    assert quantile([5.0], 0.5) == 5
