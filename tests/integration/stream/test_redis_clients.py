"""The live stream as a client of Redis reads it: by the documented key and fields, with the same frames as SSE."""

import json
import re
import zlib
from pathlib import Path
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from footplate.domain.ports.api import Cursor
from footplate.domain.sessions import events
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.stream_hub import StreamHub
from footplate.stream.turn_publisher import TurnPublisher

from .memory_log import MemoryLog
from .redis_server import RedisServer
from .stream_client import ORGANISATION, Client

PAGE = Path(__file__).resolve().parents[3] / "docs" / "streams.md"
Entries = list[tuple[bytes, dict[bytes, bytes]]]
Frame = tuple[str, str, Any]
"""The event, id and data of a frame."""


class Reader:
    """Reads entries as `docs/streams.md` describes, without the project's code."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._seq = 0
        self.key = f"footplate:live:{{{zlib.crc32(session_id.encode()) % 64:02}}}"

    def frames(self, entries: Entries) -> list[Frame]:
        return [frame for _, fields in entries for frame in self._frames(fields)]

    def _frames(self, fields: dict[bytes, bytes]) -> list[Frame]:
        if fields[b"s"].decode() != self._session_id or fields[b"o"].decode() != ORGANISATION:
            return []
        return [frame for kind, body in json.loads(fields[b"b"]) for frame in self._item_frames(kind, body)]

    def _item_frames(self, kind: str, body: Any) -> list[Frame]:
        if kind == "events":
            self._seq = body[-1][0]
            return [(event["type"], str(seq), event) for seq, event in body]
        if kind == "start":
            data = {"type": "event_start", "event": {"id": body["id"], "type": body["type"]}}
            return [("event_start", f"{self._seq}.{body['id']}.0", data)]
        assert kind == "delta"
        content = {"type": "text", "text": body["text"]}
        delta = {"type": "content_delta", "index": 0, "content": content}
        data = {"type": "event_delta", "event_id": body["id"], "delta": delta}
        return [("event_delta", f"{self._seq}.{body['id']}.{body['offset'] + len(body['text'])}", data)]


def _joined(frames: list[Frame]) -> list[Frame]:
    """Joins the text of a preview, because the API may split it anywhere."""
    result: list[Frame] = []
    for event, frame_id, data in frames:
        if event == "event_delta" and result and result[-1][0] == event:
            before = result.pop()[2]["delta"]["content"]["text"]
            data["delta"]["content"]["text"] = before + data["delta"]["content"]["text"]
        result.append((event, frame_id, data))
    return result


@pytest.mark.requirement("K3")
async def test_redis_entries_have_the_same_frames_as_sse(
    shared_redis: RedisServer, hub: StreamHub, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    client = await Client(hub, session_id, cursor=Cursor(0)).open()
    turn = TurnPublisher(live, ORGANISATION, session_id)
    await turn.publish(log.append(session_id, events.status_running(), events.model_request_start()))
    await client.until("span.model_request_start")
    preview = turn.preview("agent.message")
    for piece in ("Gr", "üße \U0001f642\u2028", "done"):
        preview.write(piece)
        turn.flush()
    await live.wait_until_sent()
    while not (client.seen[-1].event == "event_delta" and "done" in json.dumps(client.seen[-1].data)):
        await client.next()
    text = "Grüße \U0001f642\u2028done"
    await turn.publish(log.append(session_id, events.message(text, event_id=preview.event_id)))
    await turn.publish(log.append(session_id, events.status_idle({"type": "end_turn"})))
    await client.until("session.status_idle")
    await live.wait_until_sent()

    reader = Reader(session_id)
    async with Redis.from_url(shared_redis.url) as redis:
        found = reader.frames(cast("Entries", await redis.xrange(reader.key)))
    assert len(found) == 8
    assert _joined(found) == _joined([(frame.event, frame.id, frame.data) for frame in client.seen])
    await client.close()


@pytest.mark.requirement("K3")
async def test_a_reader_needs_only_the_documented_permissions(
    own_redis: RedisServer, log: MemoryLog, session_id: str
) -> None:
    """The Redis user that the page proposes can read the streams and nothing else."""
    (rights,) = re.findall(r"`ACL SETUSER reader on >… ([^`]+)`", PAGE.read_text())
    async with LivePublisher(own_redis.url) as live, Redis.from_url(own_redis.url) as owner:
        await live.publish(ORGANISATION, session_id, log.append(session_id, events.status_running()))
        await live.wait_until_sent()
        await owner.execute_command("ACL", "SETUSER", "reader", "on", ">secret", *rights.split())
        key = Reader(session_id).key
        async with Redis.from_url(own_redis.url, username="reader", password="secret") as reader:
            assert len(await reader.xread({key: "0"})) == 1
            with pytest.raises(NoPermissionError):
                await reader.xadd(key, {"s": "mine"})
            with pytest.raises(NoPermissionError):
                await reader.xrange("footplate:open:{00}:org:session")


async def test_the_length_of_a_shard_is_limited(
    shared_redis: RedisServer, live: LivePublisher, log: MemoryLog, session_id: str
) -> None:
    """About ten thousand entries, as the page states. Later clients read the log."""
    for _ in range(12_000):
        await live.publish(ORGANISATION, session_id, log.append(session_id, events.status_running()))
    assert await live.wait_until_sent(seconds=30)
    async with Redis.from_url(shared_redis.url) as redis:
        assert 10_000 <= await redis.xlen(Reader(session_id).key) < 10_500
