"""Measures the delay of deltas on a full worker: many sessions stream at once through one worker, API and Redis.

The scripted model writes the current time into each delta, and the client compares it with the same clock. Only deltas
sent while all sessions were streaming are counted.
"""

import asyncio
import itertools
from typing import Final

from bench.prove.figure import require
from bench.support.cluster import Cluster
from bench.support.minimal_client import MinimalClient, Received, events_path, validate_frames
from bench.support.speed.measurement import Measurement, milliseconds, quantile
from footplate.testing import replies, reply, stamps

SESSIONS: Final = 100
_PER_SECOND: Final = 10
_MAX_DELAY_MS: Final = 250
_SCRIPT: Final = "stamps"

Delta = tuple[float, float]
"""The times when a delta was sent and when it arrived."""


async def measure(cluster: Cluster, *, sessions: int, seconds: float, slack: float = 1.0) -> Measurement:
    """Lets each session stream for `seconds`; the first of these pass until all sessions are streaming."""
    script = replies(reply(stamps(int(seconds * _PER_SECOND), delay=1 / _PER_SECOND), repeat=True))
    await cluster.model.install(_SCRIPT, script)
    async with MinimalClient(cluster.base_urls[0], cluster.key) as client:
        session_fields = await client.create_session_fields()

        async def session() -> list[Received]:
            session_id = (await client.post("/v1/sessions", session_fields))["id"]
            async with client.stream(events_path(session_id, deltas=True)) as frames:
                await all_listen.wait()
                await client.send(session_id, f"Count [[script:{_SCRIPT}]]")
                return await frames.until_idle(patience=seconds + 60)

        all_listen = asyncio.Barrier(sessions)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(session()) for _ in range(sessions)]
    return _judge([task.result() for task in tasks], seconds, slack)


def _judge(streams: list[list[Received]], seconds: float, slack: float) -> Measurement:
    deltas = [_deltas(frames) for frames in streams]
    begin, end = max(found[0][0] for found in deltas), min(found[-1][0] for found in deltas)
    require(holds=end - begin >= seconds / 4, otherwise=f"all sessions streamed together for {end - begin:.1f} s only")
    late = [came - sent for found in deltas for sent, came in found if begin <= sent <= end]
    p50, p99 = milliseconds(quantile(late, 0.5)), milliseconds(quantile(late, 0.99))
    rate = len(late) / (end - begin)
    return Measurement(
        text=f"{len(streams)} sessions at {rate / len(streams):.1f} deltas/s each on one worker: "
        f"delay p99 {p99:.0f} ms (limit {_MAX_DELAY_MS}), p50 {p50:.0f}",
        holds=p99 < _MAX_DELAY_MS * slack,
        details={
            "p50_ms": p50,
            "p99_ms": p99,
            "most_ms": milliseconds(max(late)),
            "deltas": len(late),
            "seconds_together": round(end - begin, 1),
            "events_validated": sum(validate_frames(frames) for frames in streams),
        },
    )


def _deltas(frames: list[Received]) -> list[Delta]:
    """Returns the times of all deltas. A frame may contain several."""
    return list(
        itertools.chain.from_iterable(
            ((float(sent), frame.at) for sent in frame.body["delta"]["content"]["text"].split())
            for frame in frames
            if frame.event == "event_delta"
        )
    )
