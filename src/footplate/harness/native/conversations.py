"""Caches the parsed conversations of recent sessions, so that a turn parses only new entries.

A cached conversation is used only if it is a prefix of the turn's history, because another worker may have continued
the session in between. The comparison is cheap: the engine passes the same entry objects again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from footplate.domain.ports import Entry
from footplate.harness.native.mapping import Conversation

_MOST_ENTRIES: Final = 100_000
"""Maximum entries of all sessions together: a few hundred megabytes of messages of usual size."""


class Conversations:
    def __init__(self, *, max_entries: int = _MOST_ENTRIES) -> None:
        self._most = max_entries
        self._size = 0
        self._kept: OrderedDict[str, Conversation] = OrderedDict()

    def take(self, session_id: str, history: Sequence[Entry]) -> Conversation:
        """Removes the session's conversation from the cache, or parses it. The turn owns it exclusively while it
        changes it.
        """
        cached = self._kept.pop(session_id, None)
        if cached is not None:
            self._size -= len(cached.entries)
            if cached.entries == [*history[: len(cached.entries)]]:
                cached.add(history[len(cached.entries) :])
                return cached
        return Conversation(history)

    def keep(self, session_id: str, conversation: Conversation) -> None:
        """Stores the conversation for the session's next turn and evicts the oldest ones over the limit."""
        self._drop(session_id)
        self._kept[session_id] = conversation
        self._size += len(conversation.entries)
        while self._size > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, session_id: str) -> None:
        if dropped := self._kept.pop(session_id, None):
            self._size -= len(dropped.entries)
