"""Kills the api while clients send messages, and checks that the SDK's retries lose and duplicate none.

Each kill comes at a random time while messages are sent. If a message was committed and its response lost, the client
retries, and only the api's idempotency record prevents a second message; door-3 tests that in detail.
"""

import asyncio
import random
import statistics
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import anthropic
import asyncpg
import httpx2
import orjson

from bench.support.crash.cell import Cell
from bench.support.crash.session_check import check_session
from bench.support.crash.stream_watcher import StreamWatcher
from footplate.domain.sessions import events

_CHATS: Final = 3
_MESSAGES: Final = """
select body, created_at from events where session_id = $1 and type = $2 and ref_seq is null order by seq
"""


@dataclass(slots=True)
class _Chat:
    """A session that receives one message for each kill, and the client that watches all of it."""

    session_id: str
    watcher: StreamWatcher
    sent: list[str] = field(default_factory=list)
    acknowledged: dict[str, float] = field(default_factory=dict)


async def kill_api(cell: Cell, *, kills: int, chance: random.Random) -> None:
    """Kills the api. The cell's client needs many retries, because the api is away for seconds."""
    retried = _count_retries(cell)
    killed: list[float] = []
    async with AsyncExitStack() as exits, asyncio.TaskGroup() as group:
        chats = []
        for _ in range(_CHATS):
            session_id = await cell.create_session()
            chats.append(_Chat(session_id, await exits.enter_async_context(StreamWatcher(cell.client, session_id))))
        usual = await _measure_usual_time(cell, chats)
        for number in range(kills):
            group.create_task(cell.run_turn())
            sends = [group.create_task(_send(cell, chat, f"message {number}")) for chat in chats]
            await asyncio.sleep(chance.random() * usual)
            killed.append(time.time())
            await cell.cluster.kill_api(0)
            await cell.cluster.restart_api(0)
            await asyncio.gather(*sends)
        lost_responses = sum([await _check_chat(cell, chat, killed) for chat in chats])
    cell.findings.tallies.update(api_kills=kills, posts_retried=retried.total(), posts_committed_and_cut=lost_responses)


def _count_retries(cell: Cell) -> Counter[str]:
    retried: Counter[str] = Counter()

    async def count_retry(request: httpx2.Request) -> None:
        if request.method == "POST" and request.headers.get("x-stainless-retry-count", "0") != "0":
            retried[request.url.path] += 1

    cell.client.http.event_hooks = {**cell.client.http.event_hooks, "request": [count_retry]}
    return retried


async def _measure_usual_time(cell: Cell, chats: list[_Chat]) -> float:
    """Returns how long sending takes without a kill."""
    times = []
    for number in range(5):
        began = time.monotonic()
        await asyncio.gather(*(_send(cell, chat, f"first {number}") for chat in chats))
        times.append(time.monotonic() - began)
    return statistics.median(times)


async def _send(cell: Cell, chat: _Chat, text: str) -> None:
    chat.sent.append(text)
    try:
        await cell.client.send_text(chat.session_id, text)
    except anthropic.APIError as error:
        cell.findings.tallies["posts_given_up"] += 1
        print(f"  the SDK gave up: {error!r}", flush=True)
    else:
        chat.acknowledged[text] = time.time()


async def _check_chat(cell: Cell, chat: _Chat, killed: list[float]) -> int:
    """Checks a chat. Returns how many messages were committed by an api that was killed before it responded."""
    connection = await asyncpg.connect(cell.cluster.settings.database_url)
    try:
        rows = await connection.fetch(_MESSAGES, chat.session_id, events.USER_MESSAGE)
    finally:
        await connection.close()
    found: Counter[str] = Counter()
    committed: dict[str, datetime] = {}
    for row in rows:
        text = orjson.loads(row["body"])["content"][0]["text"]
        found[text] += 1
        committed[text] = row["created_at"]
    faults = [f"{text!r} is in the log {count} times" for text, count in found.items() if count > 1]
    faults += [f"{text!r} was acknowledged and is not in the log" for text in chat.acknowledged if not found[text]]
    cell.findings.record_faults(*(f"{chat.session_id}: {fault}" for fault in faults))
    cell.findings.tallies["messages"] += len(chat.sent)
    await chat.watcher.wait_for_turns(turns=len(found))
    cell.findings.add(await check_session(cell.cluster, chat.session_id, chat.watcher.seen, turns=len(found), calls=0))
    cell.findings.tallies["stream_cuts"] += chat.watcher.cuts
    return sum(
        any(committed[text].timestamp() < moment < acknowledged for moment in killed)
        for text, acknowledged in chat.acknowledged.items()
        if text in committed
    )
