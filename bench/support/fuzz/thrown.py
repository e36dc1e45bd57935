"""Sends malformed bytes to a running api over plain sockets, and checks the responses."""

import asyncio
import random
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import orjson

from bench.support.fuzz import malformed
from bench.support.fuzz.malformed import Case, Wire
from bench.support.fuzz.target import Seat

_AT_ONCE: Final = 16
_PATIENCE: Final = 20.0
_UNANSWERED: Final = 0.15
"""Seconds to wait for a response that is optional."""
_KEPT: Final = 20
_CLOSE: Final = 8
_SWITCHING: Final = 101
_REFUSED: Final = 400
_KINDS: Final = (malformed.cursor, malformed.cursor, malformed.head, malformed.frame)


@dataclass(slots=True)
class Thrown:
    cases: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)

    @property
    def server_errors(self) -> int:
        return sum(count for status, count in self.statuses.items() if status.startswith("5"))

    def complain(self, case: Case, finding: str) -> None:
        self.wrong[f"{case.kind}: {finding}"[:200]] += 1
        if len(self.samples) < _KEPT:
            self.samples.append(f"{finding}: {case.sent[:300]!r} {case.frames[:100]!r}")


async def throw(base_url: str, key: str, seats: Sequence[Seat], *, count: int, seed: int) -> Thrown:
    url = urlsplit(base_url)
    wire = Wire(url.netloc, key, seats)
    chance = random.Random(seed)
    cases = iter([_KINDS[number % len(_KINDS)](chance, wire) for number in range(count)])
    thrown = Thrown()

    async def some() -> None:
        for case in cases:
            thrown.cases[case.kind] += 1
            try:
                async with asyncio.timeout(_PATIENCE):
                    await _one(case, url.hostname or "", url.port or 0, thrown)
            except TimeoutError:
                thrown.complain(case, "the server did not finish in time")

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(some())
    return thrown


async def _one(case: Case, host: str, port: int, thrown: Thrown) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(case.sent)
        status = await _status(reader, case)
        thrown.statuses[str(status or "none")] += 1
        if status is None and case.must_answer:
            thrown.complain(case, "no response")
        elif status is not None and status not in case.statuses:
            thrown.complain(case, f"unexpected status {status}")
        elif status is not None and case.kind == "cursor" and status >= _REFUSED:
            await _envelope(reader, case, thrown)
        elif status == _SWITCHING and case.frames:
            writer.write(case.frames)
            if case.must_close:
                await _closing(reader, case, thrown)
    except (ConnectionError, asyncio.IncompleteReadError):
        thrown.statuses["cut"] += 1
        if case.must_answer:
            thrown.complain(case, "disconnected without a response")
    finally:
        # Half of the clients disconnect without closing properly.
        if len(case.sent) % 2:
            writer.transport.abort()
        else:
            writer.close()


async def _status(reader: asyncio.StreamReader, case: Case) -> int | None:
    try:
        async with asyncio.timeout(None if case.must_answer else _UNANSWERED):
            line = await reader.readline()
            words = line.split()
            if len(words) < 2 or not words[1].isdigit():
                return None
            while (await reader.readline()).strip():
                pass
    except TimeoutError:
        return None
    return int(words[1])


async def _envelope(reader: asyncio.StreamReader, case: Case, thrown: Thrown) -> None:
    """Checks the error body. It follows the headers at once, and the connection stays open."""
    body = b""
    while not body.endswith(b"}"):
        piece = await reader.read(65536)
        if not piece:
            break
        body += piece
    try:
        error = orjson.loads(body)["error"]
        fits = error["type"] == "invalid_request_error" and error["message"] and error["field"]
    except (ValueError, LookupError, TypeError):
        fits = False
    if not fits:
        thrown.complain(case, "an error without the error envelope")


async def _closing(reader: asyncio.StreamReader, case: Case, thrown: Thrown) -> None:
    """Reads up to the server's close frame, and checks its code."""
    while True:
        first, second = await reader.readexactly(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", await reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", await reader.readexactly(8))
        payload = await reader.readexactly(length)
        if first & 0x0F == _CLOSE:
            code = struct.unpack("!H", payload[:2])[0] if payload else 1005
            thrown.codes[str(code)] += 1
            if code not in case.codes:
                thrown.complain(case, f"closed with {code} and not one of {sorted(case.codes)}")
            return
