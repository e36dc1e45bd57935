"""Spools a request body of JSON lines to disk while it arrives, because it may be too large for memory.

After the whole body has arrived, its lines are read twice: once to validate them and once to store them. No database
connection is held while a slow client sends the body.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Final, Self

from fastapi import Request

from footplate.api.errors import LimitExceeded, TooLarge
from footplate.api.requests.parsing import parse_line, read_chunks
from footplate.api.service_container import get_services
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.network.request_limits import RequestLimits, setting_name

_MEMORY_BYTES: Final = 1024 * 1024
MAX_LINES: Final = 250_000


class LineSpool:
    """A spooled request: its first line, and a digest of the others."""

    def __init__(self, file: IO[bytes], limits: RequestLimits) -> None:
        self._file = file
        self._limits = limits
        self._lines_offset = 0
        self.first_line = b""
        self.lines_digest = b""
        self.body_digest = b""
        """A hash that stands for the whole body when retries are recognised."""

    @classmethod
    async def receive(cls, request: Request) -> "LineSpool":
        limits = get_services(request).limits
        spool = cls(tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES), limits)  # noqa: SIM115 - closed with the spool
        try:
            body_hash = hashlib.sha256()
            async for chunk in read_chunks(request, limits.transcript_bytes, setting_name("transcript_bytes")):
                body_hash.update(chunk)
                spool._file.write(chunk)
            spool.body_digest = body_hash.digest()
            await asyncio.to_thread(spool._read_first_line)
        except BaseException:
            spool._file.close()
            raise
        return spool

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def lines(self) -> Iterator[tuple[int, JsonObject]]:
        """Yields the lines after the first, with their numbers. Blank lines are not counted."""
        self._file.seek(self._lines_offset)
        number = 0
        while raw := self._read_line():
            if raw.strip():
                number += 1
                if number > MAX_LINES:
                    raise InvalidRequest(
                        f"The transcript has more than {MAX_LINES} lines.",
                        field="lines",
                        help_text="Import a shorter transcript: start a new Claude Code session from the last part.",
                    )
                yield number, _parse(number, raw, self._limits)

    def _read_first_line(self) -> None:
        self._file.seek(0)
        self.first_line = self._read_line()
        self._lines_offset = self._file.tell()
        digest = hashlib.sha256()
        while piece := self._file.read(_MEMORY_BYTES):
            digest.update(piece)
        self.lines_digest = digest.digest()

    def _read_line(self) -> bytes:
        limit = self._limits.message_bytes
        raw = self._file.readline(limit + 1)
        if len(raw) > limit:
            raise TooLarge(limit, setting_name("message_bytes"))
        return raw


def _parse(number: int, raw: bytes, limits: RequestLimits) -> JsonObject:
    try:
        return parse_line(raw, limits)
    except (InvalidRequest, LimitExceeded) as error:
        raise InvalidRequest(
            f"Line {number} is invalid: {error.message}",
            field=f"lines.{number}",
            help_text="Nothing was stored. Remove the line and import the transcript again.",
        ) from error
