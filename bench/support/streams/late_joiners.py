"""Checks that clients that join during a message get all of it, in a form that the SDK's accumulator accepts."""

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from anthropic.lib.sessions import AccumulatedEvent, accumulate_managed_agents_event

from bench.prove.figure import require
from bench.support.clients import Client
from bench.support.cluster import Cluster
from footplate.domain.sessions import events
from footplate.testing import replies, text

_CHUNKS: Final = 200
_DELAY: Final = 0.01
_AT_ONCE: Final = 10
_TEXT: Final = " ".join(f"word{number}" for number in range(1000))
_PATIENCE: Final = 60.0


async def join_during_messages(cluster: Cluster, clients: Sequence[Client], count: int) -> int:
    """Returns how many clients joined in the middle of a message. Raises if one of them did not get all of it."""
    await cluster.model.install("long", replies([text(_TEXT, chunks=_CHUNKS, delay=_DELAY)]))
    joined = 0
    while joined < count:
        session_id = await clients[0].session()
        async with clients[0].stream(session_id, deltas=[events.AGENT_MESSAGE]) as stream:
            await clients[0].send_text(session_id, "[[script:long]]")
            await stream.until("event_delta")
            async with asyncio.TaskGroup() as group:
                tries = [
                    group.create_task(_join_late(client, session_id, random.uniform(0, _CHUNKS * _DELAY * 0.9)))
                    for client in [*clients] * (min(_AT_ONCE, count - joined + 1) // len(clients))
                ]
        joined += sum(item.result() for item in tries)
    return joined


async def _join_late(client: Client, session_id: str, wait: float) -> bool:
    """Joins after `wait` seconds and returns whether that was before the message was finished.

    If so, requires that the previews contain the whole text before the finished event arrives.
    """
    await asyncio.sleep(wait)
    shown: dict[str, AccumulatedEvent | None] = {}
    stream = await client.sdk.beta.sessions.events.stream(session_id, event_deltas=[events.AGENT_MESSAGE])
    if (await client.sdk.beta.sessions.retrieve(session_id)).status == "idle":
        await stream.close()  # on a busy machine the message may be finished already
        return False
    async with asyncio.timeout(_PATIENCE), stream:
        async for event in stream:
            if event.type == "event_start":
                require(holds=event.event.id not in shown, otherwise=f"{event.event.id} starts twice")
                shown[event.event.id] = accumulate_managed_agents_event(None, event)
            elif event.type == "event_delta":
                # Raises if the delta has no start, or if there is a gap.
                shown[event.event_id] = accumulate_managed_agents_event(shown.get(event.event_id), event)
            elif event.type == events.AGENT_MESSAGE:
                before = shown.get(event.id)
                require(holds=before is not None, otherwise="a message came without its preview")
                assert before is not None
                preview = "".join(block.text for block in before.content if block.type == "text")
                require(holds=preview == _TEXT, otherwise=f"{len(preview)} of {len(_TEXT)} characters were shown")
                final = accumulate_managed_agents_event(before, event)
                assert final is not None
                require(holds=final.content == event.content, otherwise="the finished message differs")
            elif event.type == events.STATUS_IDLE:
                break
    return bool(shown)
