"""A restarted worker's first turn calls the model within 150 ms of the claim, or 250 ms after 1,000 turns.

The worker is stopped and started for each sample, so its first turn loads the conversation from the store and builds
the whole request. The time is from the event that the worker's claim appends to the request's arrival at the model.
"""

from contextlib import AsyncExitStack
from typing import Final

from bench.prove.figure import Figure, time_limit
from bench.support.cluster import open_cluster
from bench.support.speed.measurement import median, milliseconds
from bench.support.speed.timed_conversation import TimedConversation, Turn, add_request_times, open_client

_SHORT_LIMIT_MS: Final = 150
_LONG_LIMIT_MS: Final = 250


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    lengths, samples = ((3, 20), 1) if quick else ((10, 1000), 5)
    cold: list[list[Turn]] = []
    async with AsyncExitStack() as exits:
        cluster = await exits.enter_async_context(open_cluster())
        client = await open_client(cluster, exits)
        await cluster.model.clear()
        conversations = [await TimedConversation.create(client) for _ in lengths]
        for conversation, length in zip(conversations, lengths, strict=True):
            await conversation.run_turns(length)
        for conversation in conversations:
            for _ in range(samples):
                await cluster.restart_worker(0)
                await conversation.run_turns(1)
            cold.append(conversation.turns[-samples:])
        await add_request_times(cluster, [turn for conversation in conversations for turn in conversation.turns])
    short, long = ([turn.request_arrived - turn.claimed for turn in turns] for turns in cold)
    return Figure(
        headline=f"at worst {milliseconds(max(short)):.0f} ms after {lengths[0]} turns (limit {_SHORT_LIMIT_MS}), "
        f"{milliseconds(max(long)):.0f} after {lengths[1]:,} (limit {_LONG_LIMIT_MS})",
        summary=f"after a restart, the request reaches the model {milliseconds(median(short)):.0f} ms after the claim "
        f"in a conversation of {lengths[0]} turns, at worst {milliseconds(max(short)):.0f} (limit {_SHORT_LIMIT_MS}), "
        f"and {milliseconds(median(long)):.0f} ms in one of {lengths[1]:,}, at worst {milliseconds(max(long)):.0f} "
        f"(limit {_LONG_LIMIT_MS})",
        holds=milliseconds(max(short)) <= time_limit(_SHORT_LIMIT_MS, quick=quick)
        and milliseconds(max(long)) <= time_limit(_LONG_LIMIT_MS, quick=quick),
        details={"short_ms": [*map(milliseconds, short)], "long_ms": [*map(milliseconds, long)]},
    )
