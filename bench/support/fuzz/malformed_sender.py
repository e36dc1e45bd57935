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
from bench.support.fuzz.malformed import MalformedCase, RequestParts
from bench.support.fuzz.target_api import Seat

_AT_ONCE: Final = 16
_PATIENCE: Final = 20.0
_OPTIONAL_SECONDS: Final = 0.15
"""Seconds to wait for a response that is optional."""
_MAX_SAMPLES: Final = 20
_CLOSE: Final = 8
_SWITCHING: Final = 101
_REFUSED: Final = 400
_KINDS: Final = (malformed.make_cursor, malformed.make_cursor, malformed.make_head, malformed.make_frame)


@dataclass(slots=True)
class SendReport:
    cases: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)

    @property
    def server_errors(self) -> int:
        return sum(count for status, count in self.statuses.items() if status.startswith("5"))

    def record_problem(self, case: MalformedCase, finding: str) -> None:
        self.wrong[f"{case.kind}: {finding}"[:200]] += 1
        if len(self.samples) < _MAX_SAMPLES:
            self.samples.append(f"{finding}: {case.sent[:300]!r} {case.frames[:100]!r}")


async def send_malformed(base_url: str, key: str, seats: Sequence[Seat], *, count: int, seed: int) -> SendReport:
    url = urlsplit(base_url)
    wire = RequestParts(url.netloc, key, seats)
    chance = random.Random(seed)
    cases = iter([_KINDS[number % len(_KINDS)](chance, wire) for number in range(count)])
    report = SendReport()

    async def some() -> None:
        for case in cases:
            report.cases[case.kind] += 1
            try:
                async with asyncio.timeout(_PATIENCE):
                    await _send_case(case, url.hostname or "", url.port or 0, report)
            except TimeoutError:
                report.record_problem(case, "the server did not finish in time")

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(some())
    return report


async def _send_case(case: MalformedCase, host: str, port: int, report: SendReport) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(case.sent)
        status = await _read_status(reader, case)
        report.statuses[str(status or "none")] += 1
        if status is None and case.must_respond:
            report.record_problem(case, "no response")
        elif status is not None and status not in case.statuses:
            report.record_problem(case, f"unexpected status {status}")
        elif status is not None and case.kind == "cursor" and status >= _REFUSED:
            await _check_envelope(reader, case, report)
        elif status == _SWITCHING and case.frames:
            writer.write(case.frames)
            if case.must_close:
                await _check_close(reader, case, report)
    except (ConnectionError, asyncio.IncompleteReadError):
        report.statuses["cut"] += 1
        if case.must_respond:
            report.record_problem(case, "disconnected without a response")
    finally:
        # Half of the clients disconnect without closing properly.
        if len(case.sent) % 2:
            writer.transport.abort()
        else:
            writer.close()


async def _read_status(reader: asyncio.StreamReader, case: MalformedCase) -> int | None:
    try:
        async with asyncio.timeout(None if case.must_respond else _OPTIONAL_SECONDS):
            line = await reader.readline()
            fields = line.split()
            if len(fields) < 2 or not fields[1].isdigit():
                return None
            while (await reader.readline()).strip():
                pass
    except TimeoutError:
        return None
    return int(fields[1])


async def _check_envelope(reader: asyncio.StreamReader, case: MalformedCase, report: SendReport) -> None:
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
        report.record_problem(case, "an error without the error envelope")


async def _check_close(reader: asyncio.StreamReader, case: MalformedCase, report: SendReport) -> None:
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
            report.codes[str(code)] += 1
            if code not in case.codes:
                report.record_problem(case, f"closed with {code} and not one of {sorted(case.codes)}")
            return
