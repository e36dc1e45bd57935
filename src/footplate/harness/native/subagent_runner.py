"""Starts the subagents of a turn, each in a thread with its own conversation, and resumes those that are still open.

A subagent runs in the same agent loop as the agent, with its own configuration. Its entries and events are committed
through the agent's log, so a later attempt at the turn finds how far it came and continues there. The start of a thread
is in the same commit as the call that starts it, and its end in the same commit as the call's result.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from pydantic_ai.messages import ToolCallPart

from footplate.domain import ids
from footplate.domain.agents.agents_and_config import Subagent
from footplate.domain.errors import Permanent
from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import HookEvent, HookFeedback
from footplate.domain.policy.permissions import Decision
from footplate.domain.ports.harness import Entry, FullOutput, Gate, Preview, SteerMessage, TurnContext, TurnLog
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, PreviewType, Usage
from footplate.domain.sessions.groups import SESSION_TOOLS
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness.native import conversation_entries, thread_entries
from footplate.harness.native.conversation_entries import Conversation
from footplate.harness.native.thread_entries import OpenThread
from footplate.harness.native.toolset.builtin_tools import OUTPUT_LIMIT, ToolOutput, failed_output
from footplate.harness.tool_calls.command_details import truncate

MAX_THREADS: Final = 100
"""How many subagents one turn may start."""
INTERRUPTED_BY_USER: Final = "The user interrupted this subagent. Its work so far remains in the files."

RunLoop = Callable[[TurnContext, Conversation], Awaitable[TurnOutcome]]


class AppendToLog(Protocol):
    async def __call__(
        self, events: Sequence[Event] = (), entries: Sequence[Entry] = (), *, usage: Usage | None = None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class ExecutedCall:
    """The result of a call. `output` is None if its subagent waits for the events in `pending`."""

    output: ToolOutput | None
    pending: tuple[str, ...] = ()
    last_events: Sequence[Event] = ()
    """The last events of the subagent's thread, which are committed with the result."""
    last_entries: Sequence[Entry] = ()
    is_interrupted: bool = False
    """Whether the whole turn is interrupted."""


@dataclass(slots=True)
class SubagentRunner:
    """The subagents of one turn."""

    turn: TurnContext
    conversation: Conversation
    append: AppendToLog
    run_loop: RunLoop

    def is_subagent_call(self, call: ToolCallPart) -> bool:
        return call.tool_name == threads.SUBAGENT_TOOL and bool(self.turn.config.subagents)

    def refusal_reason(self, call_input: JsonObject) -> str | None:
        """Why no subagent is started, as a message for the model. None if it may start."""
        if self.conversation.threads.started_in(self.turn.turn_id) >= MAX_THREADS:
            return f"This turn has started {MAX_THREADS} subagents, which is the limit. Do the remaining work yourself."
        if not str(call_input.get("prompt") or "").strip():
            return "The call has no `prompt`. Describe the task of the subagent."
        return threads.subagent_refusal(call_input, [agent.name for agent in self.turn.config.subagents])

    def start(self, call: ToolCallPart, call_input: JsonObject, use: Event) -> tuple[list[Event], list[Entry]]:
        """The events and entries that start the thread. They are committed with the call."""
        name, prompt = str(call_input.get("subagent_type")), str(call_input.get("prompt"))
        thread = OpenThread(ids.new_id(ids.THREAD), name, self.turn.turn_id, call.tool_call_id, use.id)
        first = conversation_entries.prompt_entry(self.turn.turn_id, [ev.text_block(prompt)])
        events = [
            threads.created(thread.id, name, call.tool_call_id),
            threads.running(thread.id, name),
            threads.sent(prompt, thread.id, name),
            threads.in_thread(threads.received(prompt, self._primary_id, None), thread.id),
        ]
        return events, [thread_entries.started_entry(thread), thread_entries.conversation_entry(thread, first)]

    async def run(self, thread: OpenThread) -> ExecutedCall:
        """Runs the thread until it ends or waits for the client. Raises what the loop raises, except `Permanent`."""
        subagent = next((one for one in self.turn.config.subagents if one.name == thread.agent_name), None)
        if subagent is None:
            return self._end(thread, failed_output(f"The subagent {thread.agent_name!r} does not exist any more."))
        if self._is_waiting(thread):
            await self.append([threads.running(thread.id, thread.agent_name)])
        async with _linked_interrupt(self.turn, thread.id) as interrupt:
            try:
                outcome = await self.run_loop(
                    self._thread_context(thread, subagent, interrupt), Conversation(thread.entries)
                )
            except Permanent as error:
                return self._end(thread, failed_output(f"The subagent failed. {error.advice}"))
        if outcome.status is TurnStatus.AWAITING:
            await self.append([threads.waiting(thread.id, thread.agent_name, outcome.pending)])
            return ExecutedCall(None, outcome.pending)
        is_interrupted = outcome.status is TurnStatus.INTERRUPTED and self.turn.interrupt.is_set()
        return replace(self._end(thread, _to_output(outcome), outcome.text), is_interrupted=is_interrupted)

    def _end(self, thread: OpenThread, output: ToolOutput, report: str = "") -> ExecutedCall:
        messages = [
            threads.in_thread(threads.sent(report, self._primary_id, None), thread.id),
            threads.received(report, thread.id, thread.agent_name),
        ]
        events = [*(messages if report else ()), threads.idle(thread.id, thread.agent_name, thread.usage)]
        return ExecutedCall(output, last_events=events, last_entries=[thread_entries.ended_entry(thread)])

    def _is_waiting(self, thread: OpenThread) -> bool:
        """Whether the thread's last status in the log says that it waits for the client."""
        own = threads.events_of(self.turn.turn_events, thread.id)
        last = next((event for event in reversed(own) if event.type in {threads.RUNNING, threads.IDLE}), None)
        return last is not None and last.type == threads.IDLE

    def _thread_context(self, thread: OpenThread, subagent: Subagent, interrupt: asyncio.Event) -> TurnContext:
        turn = self.turn
        config = replace(
            turn.config,
            model=subagent.model,
            system=subagent.system,
            tools=tuple(name for name in subagent.tools if name not in SESSION_TOOLS),
            custom_tools=subagent.custom_tools,
            mcp_servers=subagent.mcp_servers,
            model_parameters=subagent.model_parameters,
            max_iterations=subagent.max_iterations,
            subagents=(),
        )
        return replace(
            turn,
            config=config,
            content=(),
            history=thread.entries,
            turn_events=threads.events_of(turn.turn_events, thread.id),
            superseded_events=(),
            log=_ThreadLog(turn.log, self.append, thread),
            gate=_SubagentGate(turn.gate, thread),
            interrupt=interrupt,
            claim_steering=_no_steering,
        )

    @property
    def _primary_id(self) -> str:
        return threads.primary_id(self.turn.session_id)


@dataclass(slots=True)
class _ThreadLog:
    """The log of a thread. Everything is committed through the log of the turn."""

    turn_log: TurnLog
    append_to_turn: AppendToLog
    thread: OpenThread

    async def append(
        self, events: Sequence[Event] = (), *, entries: Sequence[Entry] = (), usage: Usage | None = None
    ) -> None:
        thread = self.thread
        wrapped = [thread_entries.conversation_entry(thread, entry) for entry in entries]
        if usage is not None:
            wrapped.append(thread_entries.usage_entry(thread, usage))
        in_thread = [threads.call_in_thread(event, thread.id, thread.agent_name) for event in events]
        await self.append_to_turn(in_thread, wrapped, usage=usage)

    async def upload_files_ahead(self) -> None:
        await self.turn_log.upload_files_ahead()

    async def store_output(self, output: FullOutput, *, name: str | None = None) -> str:
        return await self.turn_log.store_output(output, name=name)

    def check(self) -> None:
        self.turn_log.check()

    def preview(self, event_type: PreviewType) -> Preview:  # noqa: ARG002 - part of the port's signature
        return _NoPreview()


@dataclass(slots=True)
class _NoPreview:
    """Previews have no thread, so the text of a subagent appears when it is complete."""

    event_id: str = field(default_factory=lambda: ids.new_id(ids.EVENT))

    def write(self, text: str) -> None: ...


@dataclass(slots=True)
class _SubagentGate:
    """The gate of the turn, for the calls of one subagent."""

    gate: Gate
    thread: OpenThread

    async def decide(
        self,
        tool: str,
        given: JsonObject,
        *,
        directory: str | None = None,
        agent: str | None = None,  # noqa: ARG002 - part of the port's signature
    ) -> Decision:
        return await self.gate.decide(tool, given, directory=directory, agent=self.thread.agent_name)

    async def run_hooks(
        self,
        event: HookEvent,
        fields: JsonObject,
        *,
        about: str = "",
        agent: str | None = None,  # noqa: ARG002 - part of the port's signature
    ) -> HookFeedback:
        name = self.thread.agent_name
        if event is not HookEvent.STOP:
            return await self.gate.run_hooks(event, fields, about=about, agent=name)
        own: JsonObject = {**fields, "agent_id": self.thread.id, "agent_type": name}
        await self.gate.run_hooks(HookEvent.SUBAGENT_STOP, own, about=name, agent=name)
        return HookFeedback()  # as with Claude Code, these hooks run and are recorded, and change nothing


async def _no_steering() -> Sequence[SteerMessage]:
    """Messages join the agent's conversation, not a subagent's."""
    return ()


@asynccontextmanager
async def _linked_interrupt(turn: TurnContext, thread_id: str) -> AsyncGenerator[asyncio.Event, None]:
    """The event that stops a thread: set if the thread or the whole turn is interrupted."""
    interrupt = turn.thread_interrupt(thread_id)
    if turn.interrupt.is_set() or any(threads.is_interrupt_of(event, thread_id) for event in turn.turn_events):
        interrupt.set()

    async def follow() -> None:
        await turn.interrupt.wait()
        interrupt.set()

    follower = asyncio.create_task(follow())
    try:
        yield interrupt
    finally:
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)


def _to_output(outcome: TurnOutcome) -> ToolOutput:
    match outcome.status:
        case TurnStatus.COMPLETED:
            text = truncate(outcome.text, OUTPUT_LIMIT) or "(The subagent ended without a message.)"
            return ToolOutput([ev.text_block(text)])
        case TurnStatus.INTERRUPTED:
            said = f"\n\nIt said last: {outcome.text}" if outcome.text else ""
            return failed_output(f"{INTERRUPTED_BY_USER}{said}")
        case _:
            return failed_output(f"The subagent failed. {outcome.error_message or ''}")
