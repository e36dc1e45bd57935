"""The fuzzer sends reproducible malformed requests, and detects a server that handles them wrongly."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from bench.support.fuzz import malformed
from bench.support.fuzz.generated_requests import FuzzReport
from bench.support.fuzz.malformed import RequestParts
from bench.support.fuzz.malformed_sender import send_malformed
from bench.support.fuzz.target_api import Seat

SEATS = [Seat("agent_1", "env_1", "sesn_1", "turn_1")]


@asynccontextmanager
async def serving(response: bytes) -> AsyncIterator[str]:
    """Runs a server that sends the same bytes to every client and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(response)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("kind", [malformed.make_cursor, malformed.make_head, malformed.make_frame])
def test_the_same_seed_gives_the_same_bytes(
    kind: Callable[[random.Random, RequestParts], malformed.MalformedCase],
) -> None:
    wire = RequestParts("host", "key", SEATS)
    first, second = ([kind(chance, wire) for _ in range(200)] for chance in (random.Random(1), random.Random(1)))
    assert first == second
    assert len({(case.sent, case.frames) for case in first}) > 100


@pytest.mark.parametrize(
    ("response", "complaint"),
    [
        (b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n", "cursor: unexpected status 500"),
        (b"HTTP/1.1 400 x\r\ncontent-length: 2\r\n\r\n{}", "cursor: an error without the error envelope"),
        (b"", "cursor: no response"),
        (b"HTTP/1.1 101 x\r\n\r\n\x88\x02\x03\xe8", "socket: closed with 1000 and not one of [1003]"),
        (b"HTTP/1.1 101 x\r\n\r\n", "socket: disconnected without a response"),
    ],
)
async def test_a_wrong_response_is_detected(response: bytes, complaint: str) -> None:
    async with serving(response) as url:
        thrown = await send_malformed(url, "key", SEATS, count=100, seed=1)
    assert thrown.cases.total() == 100
    assert complaint in thrown.wrong


def test_reports_are_summed() -> None:
    one = FuzzReport.of({"cases": {"fuzzing": 2}, "failures": {"x": 1}, "samples": ["a"]})
    total = one + FuzzReport.of({"cases": {"fuzzing": 1, "stateful": 5}, "samples": ["b"]})
    assert total.cases == {"fuzzing": 3, "stateful": 5}
    assert total.failures.total() == 1
    assert total.samples == ["a", "b"]
