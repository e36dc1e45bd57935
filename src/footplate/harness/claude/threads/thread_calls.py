"""Tracks the tool calls of one thread (the agent, or one subagent), from the model's request for the call to its
result.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from footplate.domain.agents.mcp_servers import ToolNames
from footplate.domain.errors import Temporary
from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.permissions import NOT_EVALUATED
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event
from footplate.harness.approvals import input_digest
from footplate.harness.claude.transcripts import sdk_message_parser
from footplate.harness.claude.transcripts.sdk_message_parser import Call

SUBAGENT_TOOLS: Final = frozenset({threads.SUBAGENT_TOOL, "Task"})
"""The CLI's names of the tool that starts a subagent. The second is its older name."""


class ThreadCalls:
    def __init__(self, thread_id: str | None = None, agent: str | None = None) -> None:
        """`agent`: the subagent's name. None for the primary thread."""
        self.thread_id = thread_id
        self.agent = agent
        self.open: dict[str, Call] = {}
        """Calls that are committed with their response and have no result yet."""
        self.use_events: dict[str, Event] = {}
        """The `tool_use` events of open calls, by call id."""
        self.running: set[str] = set()
        self.denied: set[str] = set()
        self._start_times: dict[str, float] = {}
        self._started: set[str] = set()
        """Calls that the worker itself has started, or that it must never start."""
        self._evaluated_inputs: dict[str, JsonObject] = {}
        self.turnstile = asyncio.Lock()

    def can_run_now(self, call: Call) -> bool:
        """Whether the call may start now. Calls run one after the other, except that subagents run in parallel."""
        running = (self.open[call_id].name for call_id in self.running)
        return not self.running or {call.name, *running} <= SUBAGENT_TOOLS

    def refused_event(self, call: Call, names: ToolNames) -> Event:
        """The event of a call that the CLI itself refused."""
        return threads.in_thread(sdk_message_parser.tool_use_event(call, names, NOT_EVALUATED), self.thread_id)

    def mark_running(self, call: Call, use: Event) -> None:
        """Marks the call as running. `call`: as the gate evaluated it."""
        self.use_events[call.id] = use
        self.running.add(call.id)
        self._evaluated_inputs[call.id] = call.input
        self._start_times[call.id] = time.monotonic()

    def duration_ms(self, call_id: str) -> int | None:
        """How long the call has been running."""
        started_at = self._start_times.get(call_id)
        return None if started_at is None else round((time.monotonic() - started_at) * 1000)

    def claim_start(self, call_id: str, name: str, call_input: JsonObject | None = None) -> bool:
        """Whether the worker may make this call now. It may once, and only with the input that the gate evaluated.
        `call_input`: the input of the requested call.
        """
        open_call = self.open.get(call_id)
        if call_id in self._started or call_id not in self.running or open_call is None or open_call.name != name:
            return False
        if call_input is not None and input_digest(call_input) != input_digest(self._evaluated_inputs.get(call_id)):
            return False
        self._started.add(call_id)
        return True

    def deny(self, call_id: str) -> None:
        """Ensures that the worker never makes this call, even if a process in the environment requests it."""
        self._started.add(call_id)
        self.denied.add(call_id)

    def close_call(self, call_id: str) -> None:
        self.open.pop(call_id, None)
        self.use_events.pop(call_id, None)
        self._evaluated_inputs.pop(call_id, None)
        self._start_times.pop(call_id, None)
        self.running.discard(call_id)
        self.denied.discard(call_id)


class KnownCalls:
    """All calls of a conversation by id, so that no other call can take the place of an approved one.

    The CLI runs beside the agent's commands and is not trusted. It could write a harmless call to the transcript, get
    it approved, and then write another call with the same id.
    """

    def __init__(self) -> None:
        self._calls: dict[str, Json] = {}

    def add_logged(self, line: JsonObject) -> None:
        """Adds the calls of a line that is already in the log, without checking them."""
        for call_id, call in _calls_in(line):
            self._calls.setdefault(call_id, call)

    def check_and_add(self, line: JsonObject) -> None:
        """Adds the calls of a new transcript line. Raises `Temporary` if it reuses the id of another call."""
        for call_id, call in _calls_in(line):
            known = self._calls.setdefault(call_id, call)
            if known is not call and input_digest(known) != input_digest(call):
                raise Temporary(
                    f"Claude Code wrote two different calls with the ID {call_id[:100]!r}. The turn was stopped."
                )


def check_same_call(requested: Call, logged: Call, *, exact: bool) -> None:
    """Raises `Temporary` unless the call that is about to start is the one in the transcript.

    `exact`: compare the input too. Claude Code adds defaults to the input of its own tools; other calls must run
    exactly as the model wrote them.
    """
    if requested.name != logged.name:
        raise Temporary(
            f"Claude Code tried to run {requested.name[:100]!r} instead of {logged.name[:100]!r}. The turn was stopped."
        )
    if exact and input_digest(requested.input) != input_digest(logged.input):
        raise Temporary(
            f"Claude Code tried to run {requested.name[:100]!r} with a different input than the model's. The "
            f"turn was stopped."
        )


def _calls_in(line: JsonObject) -> Iterator[tuple[str, Json]]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield str(block.get("id")), [block.get("name"), block.get("input")]
