"""Records every request that the scripted model server received, in order of arrival.

Only the newest bodies are kept, because each request repeats the whole conversation and older bodies
would fill the memory.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal

import orjson

from footplate.domain.json import JsonObject

Outcome = Literal["open", "complete", "cut", "gone", "error"]
"""`gone`: the client disconnected before the response was complete. `error`: the response was an error."""

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
_MAX_RECORDS: Final = 100_000


@dataclass(slots=True, kw_only=True)
class Record:
    time: float
    """Arrival time. All times are in seconds since the epoch."""
    method: str
    path: str
    query: str
    headers: dict[str, str]
    raw: bytes | None = field(repr=False)
    """The request body. None once it was dropped in favour of newer ones."""
    script: str | None = None
    n: int | None = None
    attempt: int = 0
    session: str | None = None
    request_id: str = ""
    status: int | None = None
    outcome: Outcome = "open"
    answered_at: float | None = None
    """Time of the first byte of the response."""
    ended_at: float | None = None

    @property
    def body(self) -> JsonObject | None:
        """The body, if it is a JSON object."""
        try:
            value = orjson.loads(self.raw or b"null")
        except orjson.JSONDecodeError:
            return None
        return value if isinstance(value, dict) else None

    def to_json(self, *, bodies: bool) -> JsonObject:
        line: JsonObject = {
            "time": self.time,
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "headers": dict(self.headers),
            "script": self.script,
            "n": self.n,
            "attempt": self.attempt,
            "session": self.session,
            "request_id": self.request_id,
            "status": self.status,
            "outcome": self.outcome,
            "answered_at": self.answered_at,
            "ended_at": self.ended_at,
        }
        return {**line, "body": self.body} if bodies else line


class RequestJournal:
    def __init__(self, *, keep_bytes: int = MAX_BODY_BYTES) -> None:
        self._records: deque[Record] = deque(maxlen=_MAX_RECORDS)
        self._with_body: deque[Record] = deque()
        self._stored_bytes = 0
        self._keep_bytes = keep_bytes

    def add(self, record: Record) -> None:
        self._records.append(record)
        self._with_body.append(record)
        self._stored_bytes += len(record.raw or b"")
        while self._stored_bytes > self._keep_bytes:
            oldest = self._with_body.popleft()
            self._stored_bytes -= len(oldest.raw or b"")
            oldest.raw = None

    def list_records(self, *, script: str | None = None) -> list[Record]:
        return [record for record in self._records if script is None or record.script == script]

    def clear(self) -> None:
        self._records.clear()
        self._with_body.clear()
        self._stored_bytes = 0
