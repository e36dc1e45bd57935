"""Nudges reach the worker that runs the session, and no other. Without Redis nothing fails."""

import asyncio
import time
from typing import Any

import pytest
from redis.asyncio.client import PubSub

from footplate.domain import ids
from footplate.stream.nudges import NudgeListener, NudgeSender

from .redis_server import RedisServer

pytestmark = pytest.mark.timing


async def wait_for(counts: dict[str, int], session_id: str, minimum: int, nudger: NudgeSender) -> None:
    async with asyncio.timeout(30):
        while counts.get(session_id, 0) < minimum:
            await nudger.nudge(session_id)
            await asyncio.sleep(0.02)


async def test_a_nudge_reaches_the_listener_that_watches_the_session(shared_redis: RedisServer) -> None:
    session, other = ids.new_id(ids.SESSION), ids.new_id(ids.SESSION)
    counts: dict[str, int] = {}
    strays: list[str] = []
    nudger = NudgeSender(shared_redis.url)

    def count() -> None:
        counts[session] = counts.get(session, 0) + 1

    async with NudgeListener(shared_redis.url) as listener, NudgeListener(shared_redis.url) as elsewhere:
        with listener.watch(session, count), elsewhere.watch(other, lambda: strays.append("stray")):
            await wait_for(counts, session, 1, nudger)
        counted = counts[session]
        await nudger.nudge(session)
        await asyncio.sleep(0.3)
        assert counts[session] == counted
        assert not listener._callbacks
    assert not strays
    await nudger.aclose()


async def test_listening_survives_a_restart_of_redis_and_sending_never_fails(own_redis: RedisServer) -> None:
    session = ids.new_id(ids.SESSION)
    counts: dict[str, int] = {}

    def count() -> None:
        counts[session] = counts.get(session, 0) + 1

    nudger = NudgeSender(own_redis.url)
    async with NudgeListener(own_redis.url) as listener:
        with listener.watch(session, count):
            await wait_for(counts, session, 1, nudger)
            await own_redis.stop()
            await nudger.nudge(session)
            await own_redis.start()
            await wait_for(counts, session, counts[session] + 1, nudger)
    await nudger.aclose()


async def test_a_listener_without_redis_blocks_nothing(own_redis: RedisServer) -> None:
    await own_redis.stop()
    began = time.monotonic()
    async with NudgeListener(own_redis.url) as listener:
        with listener.watch(ids.new_id(ids.SESSION), lambda: None):
            await asyncio.sleep(0.2)
    assert time.monotonic() - began < 20


async def test_a_listener_ends_even_if_its_cancellation_is_lost(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression test: a worker that was stopping handed over its turns and then waited for its listener forever."""
    read = PubSub.get_message

    async def ignore_cancellation(self: PubSub, *args: Any, **options: Any) -> object:
        try:
            return await read(self, *args, **options)
        except asyncio.CancelledError:
            return None

    monkeypatch.setattr(PubSub, "get_message", ignore_cancellation)
    async with asyncio.timeout(30):
        async with NudgeListener(shared_redis.url):
            await asyncio.sleep(0.3)
