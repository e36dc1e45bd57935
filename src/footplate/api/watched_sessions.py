"""Checks which of the sessions with open streams a principal can still see, with one query for all of its streams."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import Reads

_CACHE_SECONDS: Final = 1.5
_MAX_CACHED: Final = 10_000


class WatchedSessions:
    def __init__(self) -> None:
        self._streams: dict[str, Counter[str]] = {}
        """The open streams of this process, by principal and session."""
        self._visible: dict[Principal, tuple[float, frozenset[str], frozenset[str]]] = {}
        """By principal: when the result expires, the sessions that were checked, and those of them that it can see."""

    @contextmanager
    def watch(self, principal: Principal, session_id: str) -> Iterator[None]:
        streams = self._streams.setdefault(principal.id, Counter())
        streams[session_id] += 1
        try:
            yield
        finally:
            streams[session_id] -= 1
            if not streams[session_id]:
                del streams[session_id]
            if not streams:
                self._streams.pop(principal.id, None)

    async def is_visible(self, reads: Reads, principal: Principal, session_id: str) -> bool:
        expires, checked, visible = self._visible.get(principal, (0.0, frozenset(), frozenset()))
        if expires < time.monotonic() or session_id not in checked:
            checked = frozenset({session_id, *self._streams.get(principal.id, ())})
            visible = await reads.find_visible_sessions(principal, sorted(checked))
            if len(self._visible) >= _MAX_CACHED:
                self._visible.clear()
            self._visible[principal] = (time.monotonic() + _CACHE_SECONDS, checked, visible)
        return session_id in visible
