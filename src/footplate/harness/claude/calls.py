"""Calls of one thread, from what the model asked for to their results."""

import asyncio
from collections.abc import Iterator
from typing import Final

from footplate.domain import threads
from footplate.domain.errors import Temporary
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject
from footplate.domain.mcp import Names
from footplate.domain.permissions import NOT_JUDGED
from footplate.harness.approvals import digest
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
        """`given`: what it would be made with. Only what was judged is made, byte for byte."""
        asked = self.open.get(call_id)
        if call_id in self._started or call_id not in self.running or asked is None or asked.name != name:
            return False
        if given is not None and digest(given) != digest(self._judged.get(call_id)):
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


class KnownCalls:
    """Every call of a conversation by its id, so that a second call cannot take the place of one that was approved.

    The process that writes the transcript runs beside the agent's commands and is not trusted: it could write a
    harmless call, have it approved, and then write another one under the same id.
    """

    def __init__(self) -> None:
        self._found: dict[str, Json] = {}

    def learn(self, line: JsonObject) -> None:
        """A line that is in the log already, whoever wrote it."""
        for call_id, call in _calls_in(line):
            self._found.setdefault(call_id, call)

    def add(self, line: JsonObject) -> None:
        """Raises `Temporary` if a new line of the transcript reuses the id of another call."""
        for call_id, call in _calls_in(line):
            known = self._found.setdefault(call_id, call)
            if known is not call and digest(known) != digest(call):
                raise Temporary(
                    f"Claude Code wrote two different calls with the id {call_id[:100]!r}. The turn was stopped."
                )


def check_same(judged: Call, asked: Call, *, exact: bool) -> None:
    """Raise `Temporary` unless the call that is to start is the one that the transcript has.

    `exact`: its input too. Claude Code completes the input of its own tools; other calls are made as the model wrote
    them.
    """
    if judged.name != asked.name:
        raise Temporary(
            f"Claude Code tried to run {judged.name[:100]!r} instead of {asked.name[:100]!r}. The turn was stopped."
        )
    if exact and digest(judged.input) != digest(asked.input):
        raise Temporary(
            f"Claude Code tried to run {judged.name[:100]!r} with another input than the model's. The turn was stopped."
        )


def _calls_in(line: JsonObject) -> Iterator[tuple[str, Json]]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield str(block.get("id")), [block.get("name"), block.get("input")]
