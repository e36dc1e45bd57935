"""The streams of a session's terminal on a real Redis: people who come late, data that is lost, and input unread."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from footplate.domain import ids
from footplate.domain.ports.terminals import TerminalFrame, TerminalInput, TerminalSize
from footplate.stream import redis_keys
from footplate.stream.terminal_streams import (
    SCROLLBACK_BYTES,
    RedisTerminalChannel,
    RedisTerminalChannels,
    RedisTerminalViews,
)

from .redis_server import RedisServer
from .stream_client import ORGANISATION

pytestmark = pytest.mark.timing


@asynccontextmanager
async def open_channel(
    redis: RedisServer, session_id: str
) -> AsyncIterator[tuple[RedisTerminalChannel, RedisTerminalViews]]:
    channels, views = RedisTerminalChannels(redis.url), RedisTerminalViews(redis.url)
    channel = await channels.open_channel(ORGANISATION, session_id, "sevt_1")
    try:
        yield channel, views
    finally:
        await channel.close("end")
        await channels.aclose()
        await views.aclose()


async def read_frames(views: RedisTerminalViews, session_id: str) -> list[TerminalFrame]:
    """Returns everything that a person who attaches now receives at once."""
    frames = []
    async for frame in views.frames(ORGANISATION, session_id):
        if frame is None:
            break
        frames.append(frame)
    return frames


@pytest.mark.requirement("O3")
async def test_a_late_viewer_learns_the_program_and_its_size_although_its_start_is_trimmed(
    shared_redis: RedisServer,
) -> None:
    session_id = ids.new_id(ids.SESSION)
    async with open_channel(shared_redis, session_id) as (channel, views):
        await channel.resize(TerminalSize(101, 33))
        for _ in range(2 * SCROLLBACK_BYTES // 16_384):
            await channel.publish(b"x" * 16_384)
        frames = await read_frames(views, session_id)
        assert sum(len(frame.data) for frame in frames) <= SCROLLBACK_BYTES + 16_384
        assert {(frame.kind, frame.terminal_id, frame.size) for frame in frames} == {
            ("output", "sevt_1", TerminalSize(101, 33))
        }


@pytest.mark.requirement("O3")
async def test_a_terminal_is_announced_again_when_redis_has_lost_its_data(own_redis: RedisServer) -> None:
    session_id = ids.new_id(ids.SESSION)
    async with open_channel(own_redis, session_id) as (channel, views):
        await own_redis.stop()
        await own_redis.start()  # without what it had
        async with asyncio.timeout(20):
            while not (frames := await read_frames(views, session_id)):
                pass
        assert [(frame.kind, frame.terminal_id) for frame in frames] == [("opened", "sevt_1")]
        await views.send(ORGANISATION, session_id, "sevt_1", TerminalInput(b"typed"))
        assert [sent.keys for sent in await asyncio.wait_for(channel.receive(), 10)] == [b"typed"]


async def test_keys_that_a_program_does_not_read_stay_in_redis_for_a_minute_and_not_in_the_worker(
    shared_redis: RedisServer,
) -> None:
    session_id = ids.new_id(ids.SESSION)
    async with open_channel(shared_redis, session_id) as (channel, views):
        for number in range(300):
            await views.send(ORGANISATION, session_id, "sevt_1", TerminalInput(b"%d " % number))
        await asyncio.sleep(1.5)
        assert channel._inputs.qsize() == 1
        async with Redis.from_url(shared_redis.url) as redis:
            assert 0 < await redis.ttl(redis_keys.terminal_input_key(ORGANISATION, session_id)) <= 60
        typed = b""
        while not typed.endswith(b"299 "):
            typed += b"".join(sent.keys for sent in await asyncio.wait_for(channel.receive(), 10))
        assert typed.split() == [b"%d" % number for number in range(300)]
