"""Calls of one thread, from what the model asked for to their results."""

import asyncio
from typing import Final

from footplate.domain import threads
from footplate.domain.events import Event
from footplate.domain.json import JsonObject
from footplate.domain.mcp import Names
from footplate.domain.permissions import NOT_JUDGED
from footplate.harness.claude import mapping
from footplate.harness.claude.mapping import Call

DELEGATING: Final = frozenset({threads.TOOL, "Task"})
"""What the CLI calls the tool that asks a subagent; the second is its older name."""


class Calls:
    def __init__(self, thread_id: str | None = None, agent: str | None = None) -> None:
        """`agent`: the name of the subagent, in a thread of one."""
        self.thread_id = thread_id
        self.agent = agent
        self.open: dict[str, Call] = {}
        """Committed with their answer, and without a result."""
        self.uses: dict[str, Event] = {}
        """Of those that were let through."""
        self.running: set[str] = set()
        self._started: set[str] = set()
        """Those that the worker makes itself."""
        self._judged: dict[str, JsonObject] = {}
        self.turnstile = asyncio.Lock()

    def lets(self, call: Call) -> bool:
        """One call after the other; but subagents that the model asks at once work side by side."""
        running = (self.open[call_id].name for call_id in self.running)
        return not self.running or {call.name, *running} <= DELEGATING

    def refused(self, call: Call, names: Names) -> Event:
        """A call that the CLI itself refused."""
        return threads.inside(mapping.tool_use(call, names, NOT_JUDGED), self.thread_id)

    def begin(self, call: Call, use: Event) -> None:
        """`call`: as it was judged."""
        self.uses[call.id] = use
        self.running.add(call.id)
        self._judged[call.id] = call.input

    def starts(self, call_id: str, name: str, given: JsonObject | None = None) -> bool:
        """`given`: what it would be made with. Only what was judged is made."""
        asked = self.open.get(call_id)
        if call_id in self._started or call_id not in self.running or asked is None or asked.name != name:
            return False
        if given is not None and given != self._judged.get(call_id):
            return False
        self._started.add(call_id)
        return True

    def refuse(self, call_id: str) -> None:
        """Nobody inside can have it made all the same."""
        self._started.add(call_id)

    def end(self, call_id: str) -> None:
        self.open.pop(call_id, None)
        self.uses.pop(call_id, None)
        self._judged.pop(call_id, None)
        self.running.discard(call_id)
