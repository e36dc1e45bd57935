"""Validates each response of the synchronous SDK when it arrives. `response_validation` covers the asynchronous one."""

from collections.abc import Iterator
from typing import Any

import httpx2
import orjson

from bench.support.response_validation import SseReader, ValidationLedger


def validating_client_options(ledger: ValidationLedger) -> dict[str, Any]:
    """Returns the arguments of an HTTP client. Its own transport ignores this machine's proxy settings."""

    def hook(response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.SyncByteStream)
            response.stream = _ValidatedStream(response.stream, ledger)
        elif kind.startswith("application/json"):
            ledger.check_body(orjson.loads(response.read()))

    return {"transport": httpx2.HTTPTransport(), "event_hooks": {"response": [hook]}, "timeout": 60}


class _ValidatedStream(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, ledger: ValidationLedger) -> None:
        self._stream = stream
        self._reader = SseReader(ledger)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            for _ in self._reader.feed(chunk):
                pass
            yield chunk

    def close(self) -> None:
        self._stream.close()
