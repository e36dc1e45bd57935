"""Keeps the parsed conversations of sessions that ran here lately, so that a turn parses only what is new.

What is kept is only ever trusted as far as it equals the history that a turn is given: another worker may have gone
on with the session in between. Comparing is cheap, because the engine hands over the same entry objects again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from footplate.domain.ports import Entry
from footplate.harness.native.mapping import Conversation

_MOST_ENTRIES: Final = 100_000
"""Of all sessions together: some hundred megabytes of messages of usual size."""


class Conversations:
    def __init__(self, *, entries: int = _MOST_ENTRIES) -> None:
        self._most = entries
        self._size = 0
        self._kept: OrderedDict[str, Conversation] = OrderedDict()

    def take(self, session_id: str, history: Sequence[Entry]) -> Conversation:
        """The session's conversation, for one turn alone: it is not kept while the turn changes it."""
        kept = self._kept.pop(session_id, None)
        if kept is not None:
            self._size -= len(kept.entries)
            if kept.entries == [*history[: len(kept.entries)]]:
                kept.add(history[len(kept.entries) :])
                return kept
        return Conversation(history)

    def keep(self, session_id: str, conversation: Conversation) -> None:
        """Give it back for the session's next turn."""
        self._drop(session_id)
        self._kept[session_id] = conversation
        self._size += len(conversation.entries)
        while self._size > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, session_id: str) -> None:
        if dropped := self._kept.pop(session_id, None):
            self._size -= len(dropped.entries)
