"""Remembers which organisations' feeds have readers, so that a turn sends no notification without a reader.

API processes announce the feeds that their clients read, again and again. An announcement that is lost delays changes
by a second: readers of a feed also check the database.
"""

import time
from collections.abc import Iterable
from typing import Final

_SECONDS: Final = 3.0
"""How long an announcement is valid. API processes repeat it every second."""


class WatchedFeeds:
    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def renew(self, organisations: Iterable[str]) -> None:
        now = time.monotonic()
        self._until = {name: until for name, until in self._until.items() if until > now}
        self._until |= dict.fromkeys(organisations, now + _SECONDS)

    def is_watched(self, organisation: str) -> bool:
        return self._until.get(organisation, 0.0) > time.monotonic()
