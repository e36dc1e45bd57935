"""Sends requests of one organisation at a fixed rate, in a process of its own, and counts what was refused.

    python -m bench.support.noisy_organisation.flood '{"base_urls": …}'

It has its own process so that it does not delay the clients whose response times are measured.
"""

import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from bench.support.minimal_client import message
from bench.support.speed.measurement import ROOT

_LIMIT: Final = re.compile(rb"The limit (\w+) of the organisation is reached: \d+ ")
_WEIGHTS: Final = {"read": 60, "send": 20, "create": 8, "stream": 6, "upload": 6}
_BOUNDARY: Final = "flood"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloodPlan:
    base_urls: Sequence[str]
    key: str
    session_ids: Sequence[str]
    session_fields: dict[str, str]
    """The fields for creating a session."""
    clients: int
    requests_per_second: float
    warm_up_seconds: float
    """The first window of the rate limit permits a burst. Requests in this time are sent, but not counted."""
    seconds: float
    stream_seconds: float
    upload_bytes: int


@dataclass(slots=True)
class FloodCounts:
    sent: int = 0
    counted_seconds: float = 0.0
    refused: dict[str, int] = field(default_factory=dict)
    """Refused requests by limit."""
    refused_seconds: list[float] = field(default_factory=list)
    """Response times of requests beyond the rate, every tenth."""
    faults: list[str] = field(default_factory=list)


async def run_flood(plan: FloodPlan) -> FloodCounts:
    """Runs the flood in a new process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, json.dumps(asdict(plan))),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise RuntimeError("The flood has failed; its output is above.")
    found: dict[str, Any] = json.loads(output)
    return FloodCounts(**found)


class _Flood:
    def __init__(self, plan: FloodPlan) -> None:
        self._plan = plan
        self._counts = FloodCounts()
        self._is_counting = False
        self._streams: set[asyncio.Task[None]] = set()

    async def run(self) -> FloodCounts:
        plan = self._plan
        clients = [asyncio.create_task(self._run_client(number)) for number in range(plan.clients)]
        await asyncio.sleep(plan.warm_up_seconds)
        self._is_counting, began = True, time.monotonic()
        await asyncio.sleep(plan.seconds)
        self._is_counting, self._counts.counted_seconds = False, time.monotonic() - began
        for task in (*clients, *self._streams):
            task.cancel()
        for outcome in await asyncio.gather(*clients, return_exceptions=True):
            if isinstance(outcome, Exception):
                self._counts.faults.append(repr(outcome))
        return self._counts

    async def _run_client(self, number: int) -> None:
        plan, chance = self._plan, random.Random(number)
        url = urlsplit(plan.base_urls[number % len(plan.base_urls)])
        interval = plan.clients / plan.requests_per_second
        due = time.monotonic() + chance.random() * interval
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + interval, time.monotonic() - interval)
            (kind,) = chance.choices([*_WEIGHTS], [*_WEIGHTS.values()])
            if kind == "stream":
                reader, writer = await self._open_stream(url.netloc, reader, writer, chance)
            else:
                writer.write(self._build(kind, url.netloc, chance))
                await self._read_response(reader, time.monotonic())

    async def _open_stream(
        self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chance: random.Random
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Opens a stream and holds it for a while. Returns the connection for the next request."""
        writer.write(self._build("stream", host, chance))
        if await self._read_response(reader, time.monotonic()) != 200:
            return reader, writer
        holding = asyncio.create_task(_close_later(writer, self._plan.stream_seconds))
        self._streams.add(holding)
        holding.add_done_callback(self._streams.discard)
        return await asyncio.open_connection(*host.split(":"))

    def _build(self, kind: str, host: str, chance: random.Random) -> bytes:
        session_id = chance.choice(self._plan.session_ids)
        content_type, body = "application/json", b""
        if kind == "send":
            body = json.dumps({"events": [message("Go. [[script:noisy]]")]}).encode()
            line = f"POST /v1/sessions/{session_id}/events"
        elif kind == "create":
            body, line = json.dumps(self._plan.session_fields).encode(), "POST /v1/sessions"
        elif kind == "upload":
            content_type, line = f"multipart/form-data; boundary={_BOUNDARY}", "POST /v1/files"
            head = f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
            body = head.encode() + b"a" * self._plan.upload_bytes + f"\r\n--{_BOUNDARY}--\r\n".encode()
        else:
            line = f"GET /v1/sessions/{session_id}{'/events/stream' if kind == 'stream' else ''}"
        headers = f"host: {host}\r\nx-api-key: {self._plan.key}\r\ncontent-type: {content_type}"
        return f"{line} HTTP/1.1\r\n{headers}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body

    async def _read_response(self, reader: asyncio.StreamReader, began: float) -> int:
        """Reads a response and returns its status. Of a stream, only the headers are read."""
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        seconds, status = time.monotonic() - began, int(head.split(b" ", 2)[1])
        length = re.search(rb"content-length: (\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        named = _LIMIT.search(body)
        if status == 429 and (named is None or b"retry-after: " not in head):
            self._counts.faults.append(f"a refusal without its limit or Retry-After: {body[:200]!r}")
        elif status not in {200, 429}:
            self._counts.faults.append(f"status {status}: {body[:200]!r}")
        if self._is_counting:
            self._counts.sent += 1
            if named is not None:
                name = named[1].decode()
                self._counts.refused[name] = self._counts.refused.get(name, 0) + 1
                if named[1] == b"requests_per_second" and self._counts.sent % 10 == 0:
                    self._counts.refused_seconds.append(seconds)
        return status


async def _close_later(writer: asyncio.StreamWriter, seconds: float) -> None:
    try:
        await asyncio.sleep(seconds)
    finally:
        writer.close()


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(_Flood(FloodPlan(**json.loads(sys.argv[1]))).run()))))
