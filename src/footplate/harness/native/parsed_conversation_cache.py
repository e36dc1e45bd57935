"""Caches the parsed conversations of recent sessions, so that a turn has to parse only new entries.

A cached conversation is used only if it is a prefix of the turn's history, because another worker may have continued
the session. The comparison is fast, because the engine passes the same entry objects again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from footplate.domain.ports.harness import Entry
from footplate.harness.native.conversation_entries import Conversation

_MAX_ENTRIES: Final = 100_000
"""Maximum entries of all sessions together: a few hundred megabytes of messages of usual size."""


class ConversationCache:
    def __init__(self, *, max_entries: int = _MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._size = 0
        self._cached: OrderedDict[str, Conversation] = OrderedDict()

    def claim(self, session_id: str, history: Sequence[Entry]) -> Conversation:
        """Removes the session's conversation from the cache, or parses it. The turn owns it exclusively while it
        changes it.
        """
        cached = self._cached.pop(session_id, None)
        if cached is not None:
            self._size -= len(cached.entries)
            if cached.entries == [*history[: len(cached.entries)]]:
                cached.add_entries(history[len(cached.entries) :])
                return cached
        return Conversation(history)

    def store(self, session_id: str, conversation: Conversation) -> None:
        """Stores the conversation for the session's next turn and evicts the oldest ones over the limit."""
        self._drop(session_id)
        self._cached[session_id] = conversation
        self._size += len(conversation.entries)
        while self._size > self._max_entries:
            self._drop(next(iter(self._cached)))

    def _drop(self, session_id: str) -> None:
        if dropped := self._cached.pop(session_id, None):
            self._size -= len(dropped.entries)
