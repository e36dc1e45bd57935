"""Validates every API response that a claim receives against the models of the official SDK.

`Ledger.hook` goes into the response hooks of an HTTP client. It reads the bytes themselves, because the SDK's objects
do not show which fields were missing or unknown. A mismatch is recorded and raised at once.
"""

from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import httpx2
import orjson
from anthropic.types.beta import (
    BetaDeletedFile,
    BetaEnvironment,
    BetaEnvironmentDeleteResponse,
    BetaFileMetadata,
    BetaManagedAgentsAgent,
    BetaManagedAgentsDeletedSession,
    BetaManagedAgentsDeployment,
    BetaManagedAgentsDeploymentRun,
    BetaManagedAgentsSession,
)
from anthropic.types.beta.sessions import BetaManagedAgentsDeleteSessionResource, BetaManagedAgentsFileResource
from anthropic.types.shared.error_type import ErrorType
from typing_extensions import TypedDict

from footplate.testing import sdk_validation

FRAMES: Final = "footplate.frames"
_IGNORED_EVENTS: Final = frozenset({"ping"})


class _Error(TypedDict):
    type: ErrorType
    message: str


class _ErrorResponse(TypedDict):
    """The SDK has no model of an error that includes conflicts, only a closed set of types."""

    type: Literal["error"]
    error: _Error
    request_id: str


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event."""

    id: str
    data: dict[str, Any]


@dataclass(slots=True)
class ValidationLedger:
    """The responses validated so far. Several clients may share it."""

    events: Counter[str] = field(default_factory=Counter)
    resources: Counter[str] = field(default_factory=Counter)
    mismatches: list[str] = field(default_factory=list)
    frames: int = 0
    """The number of events that came from a stream."""

    @property
    def validated(self) -> int:
        return self.events.total()

    def check_frame(self, frame: Frame, event: str) -> None:
        if event == "error":
            self._check(self.resources, "error", frame.data)
            return
        self.frames += 1
        if frame.data.get("type") != event:
            self._record_mismatch(f"a frame has event {event!r} and data of type {frame.data.get('type')!r}")
        self._check(self.events, event, frame.data)

    def check_body(self, body: object) -> None:
        """Validates a JSON response: a resource, an error, or a list. Types without an SDK model are ignored."""
        if not isinstance(body, dict):
            return
        items = body.get("data") if "type" not in body else None
        for item in items if isinstance(items, list) else [body]:
            kind = "file_resource" if "mount_path" in item else str(item.get("type"))
            if "." in kind:
                self._check(self.events, kind, item)
            elif kind in _RESOURCES:
                self._check(self.resources, kind, item)

    async def hook(self, response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            frames: deque[Frame] = deque()
            response.extensions[FRAMES] = frames
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _ValidatedStream(response.stream, self, frames)
        elif kind.startswith("application/json") and not response.url.path.endswith("/content"):  # a file of a user
            self.check_body(orjson.loads(await response.aread()))

    def _check(self, counter: Counter[str], kind: str, data: Mapping[str, object]) -> None:
        counter[kind] += 1
        try:
            if kind in _RESOURCES:
                sdk_validation.assert_valid(_RESOURCES[kind], data)
            else:
                sdk_validation.assert_valid_event(data)
        except AssertionError as error:
            self._record_mismatch(str(error), error)

    def _record_mismatch(self, problem: str, cause: Exception | None = None) -> None:
        self.mismatches.append(problem)
        raise AssertionError(problem) from cause


_RESOURCES: Final[Mapping[str, Any]] = {
    "agent": BetaManagedAgentsAgent,
    "environment": BetaEnvironment,
    "session": BetaManagedAgentsSession,
    "deployment": BetaManagedAgentsDeployment,
    "deployment_run": BetaManagedAgentsDeploymentRun,
    "session_deleted": BetaManagedAgentsDeletedSession,
    "environment_deleted": BetaEnvironmentDeleteResponse,
    "file": BetaFileMetadata,
    "file_deleted": BetaDeletedFile,
    "file_resource": BetaManagedAgentsFileResource,
    "session_resource_deleted": BetaManagedAgentsDeleteSessionResource,
    "error": _ErrorResponse,
}


class SseReader:
    """Splits bytes into frames and validates each, for claims that read a stream without the SDK."""

    def __init__(self, ledger: ValidationLedger) -> None:
        self._ledger = ledger
        self._remainder = b""

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        *blocks, self._remainder = (self._remainder + chunk).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if line and not line.startswith(b":"))
            event = fields.get(b"event", b"").decode()
            if not fields or event in _IGNORED_EVENTS:
                continue
            if not event:
                raise AssertionError(f"the SDK drops a frame without an event name: {block!r}")
            frame = Frame(fields.get(b"id", b"").decode(), orjson.loads(fields[b"data"]))
            self._ledger.check_frame(frame, event)
            if event != "error":
                yield frame


class _ValidatedStream(httpx2.AsyncByteStream):
    """Passes the bytes of a stream on to the SDK, and collects the validated frames as they were sent."""

    def __init__(self, stream: httpx2.AsyncByteStream, ledger: ValidationLedger, frames: deque[Frame]) -> None:
        self._stream = stream
        self._reader = SseReader(ledger)
        self._frames = frames

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._frames.extend(self._reader.feed(chunk))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
