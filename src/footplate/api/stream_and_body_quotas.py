"""Limits the open streams and the memory for request bodies in this process, for each API key and in total."""

from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from footplate.api.errors import LimitExceeded
from footplate.domain.network.request_limits import MIB, RequestLimits

UNCOUNTED_BYTES: Final = 64 * 1024
"""Bodies up to this size need no reservation, so that a few large bodies never block small requests."""


class KeyQuotas:
    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._streams: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @property
    def streams(self) -> int:
        return self._streams.total()

    @property
    def buffered_bytes(self) -> int:
        return self._bytes.total()

    def acquire_stream(self, key_id: str) -> "StreamSlot":
        """Registers an open stream. Raises `LimitExceeded` if the key or the process has too many."""
        self.check_streams(key_id)
        self._streams[key_id] += 1
        return StreamSlot(self._streams, key_id)

    def check_streams(self, key_id: str) -> None:
        """Raises `LimitExceeded` if the key cannot open another stream now."""
        if self._streams[key_id] >= self._limits.streams_per_key:
            raise LimitExceeded(
                429,
                "streams_per_key",
                f"This API key already has {self._limits.streams_per_key} open streams on this server.",
            )
        if self._streams.total() >= self._limits.streams:
            raise LimitExceeded(429, "streams", f"The server already has {self._limits.streams} open streams.")

    def open_reservation(self, key_id: str) -> "BodyReservation":
        return BodyReservation(self._limits, self._bytes, key_id)


class StreamSlot:
    """One open stream. It counts until it is released or its `with` block ends."""

    def __init__(self, streams: Counter[str], key_id: str) -> None:
        self._streams: Counter[str] | None = streams
        self._key_id = key_id
        self.on_release: Callable[[], None] = lambda: None

    def release(self) -> None:
        """Safe to call twice."""
        if self._streams is not None:
            _subtract(self._streams, self._key_id, 1)
            self._streams = None
            self.on_release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class BodyReservation:
    """Memory reserved for one request's body while it arrives and is parsed."""

    def __init__(self, limits: RequestLimits, counted: Counter[str], key_id: str) -> None:
        self._limits = limits
        self._counted = counted
        self._key_id = key_id
        self._size = 0
        self._reserved = 0

    def add(self, size: int) -> None:
        """Reserves `size` more bytes. Raises `LimitExceeded` if the bodies of this key, or of all keys, would take too
        much memory.
        """
        self._size += size
        additional = max(0, self._size - UNCOUNTED_BYTES) - self._reserved
        if additional <= 0:
            return
        limits = self._limits
        if self._counted[self._key_id] + additional > limits.buffered_bytes_per_key:
            raise LimitExceeded(
                429,
                "buffered_bytes_per_key",
                "The request bodies that are in progress with this API key exceed "
                f"{limits.buffered_bytes_per_key // MIB} MiB.",
            )
        if self._counted.total() + additional > limits.buffered_bytes:
            raise LimitExceeded(
                429,
                "buffered_bytes",
                f"The request bodies that are in progress on this server exceed {limits.buffered_bytes // MIB} MiB.",
            )
        self._reserved += additional
        self._counted[self._key_id] += additional

    def release(self) -> None:
        """Safe to call twice."""
        if self._reserved:
            _subtract(self._counted, self._key_id, self._reserved)
        self._size = self._reserved = 0


def _subtract(counter: Counter[str], key: str, amount: int) -> None:
    """Removes keys that reach zero, so that the counter does not grow with every key ever seen."""
    counter[key] -= amount
    if counter[key] <= 0:
        del counter[key]
