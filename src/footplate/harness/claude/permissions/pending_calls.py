"""Tracks tool calls of a turn that wait for the client: for the result of a custom tool, an approval, or the reply to
a question.

The wait may take days, so the Claude Code CLI does not wait. It receives a placeholder result at once, which is never
logged, and continues with the other calls of the response. Before the next model request, the turn is suspended
(parked). When the client has responded, the turn resumes on any host, with the real results.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from footplate.domain.agents.mcp_servers import ToolNames
from footplate.domain.errors import FootplateError
from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import NOT_EVALUATED, Decision, PermissionOutcome
from footplate.domain.ports.harness import Entry, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import questions, threads
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import Mode
from footplate.harness import approvals
from footplate.harness.claude.permissions.custom_tool_names import CustomTools
from footplate.harness.claude.permissions.subagent_approvals import CANNOT_WAIT, SubagentApprovals
from footplate.harness.claude.threads import subagents
from footplate.harness.claude.threads.thread_calls import SUBAGENT_TOOLS, ThreadCalls
from footplate.harness.claude.transcripts import sdk_message_parser, tool_names, transcript_lines
from footplate.harness.claude.transcripts.sdk_message_parser import Call, ToolResults
from footplate.harness.claude.transcripts.tool_names import QUESTION_TOOL
from footplate.harness.tool_calls.session_tools import SessionToolResult, SessionTools

WAITING_FOR_PERSON: Final = "This call is waiting for a person."
"""The placeholder result for the CLI. It is never logged or sent to the model."""


class CallTracker(Protocol):
    """Tracks the turn's other calls. Implemented by the recorder."""

    failed: "asyncio.Future[None]"

    def claim_start(self, call_id: str, name: str) -> bool: ...
    def fail(self, error: FootplateError) -> None: ...
    def close_calls(self, call_ids: Sequence[str]) -> Awaitable[None]: ...
    def wait_until_calls_closed(self) -> Awaitable[None]: ...


class PendingCalls:
    def __init__(self, turn: TurnContext, hold_seconds: float = 0.0) -> None:
        self._turn = turn
        self.subagent_approvals = SubagentApprovals(turn, hold_seconds)
        self.custom_tools = CustomTools(turn.config)
        self.parked = asyncio.Event()
        """Set when the turn has nothing to do but wait for the client."""
        self.before_next_request: Callable[[], Awaitable[None]] | None = None
        """Called between the last call of a response and the next model request."""
        self._session_tools = SessionTools(turn)
        self._expected_custom_calls: dict[str, Call] = {}
        self._requests: dict[str, Event] = {}
        self._withheld_uuids: set[str] = set()

    async def expect_custom_call(self, call: Call) -> bool:
        """Whether the turn parks for the result of the call: it is a custom tool's, or waits for child sessions. It is
        logged when the CLI makes the call, because hooks may still stop it before.
        """
        session_tool = self.custom_tools.session_tool(call.name)
        if not self.custom_tools.is_custom(call.name) or (
            session_tool is not None and not await self._session_tools.parks(session_tool, call.input)
        ):
            return False
        self._expected_custom_calls[call.id] = call
        return True

    def make_question(self, call: Call) -> Event | None:
        """The event of a call that asks the user a question, for which the turn parks. None for other calls."""
        if call.name != QUESTION_TOOL:
            return None
        call_input = tool_names.footplate_input(call.name, call.input)
        self._requests[call.id] = event = questions.question(call_input, call_id=call.id)
        return event

    def refusal_reason(self, call: Call) -> str | None:
        """Why this call is refused regardless of the gate's decision, as a message for the model."""
        if call.name == QUESTION_TOOL and self._turn.config.mode == Mode.BACKGROUND:
            return questions.background_text(tool_names.footplate_input(call.name, call.input))
        return subagents.refusal_reason(call, self._turn.config.subagents)

    @staticmethod
    def waits_in_cli(call: Call, agent: str | None) -> bool:
        """Whether the call would wait for approval inside the CLI instead of parking the turn."""
        return agent is not None or call.name in SUBAGENT_TOOLS

    async def decide(self, call: Call, directory: str | None, agent: str | None = None) -> Decision:
        """The gate's decision on a call of the CLI. Custom tools are evaluated under their own names. `agent`: the
        subagent that makes the call. A subagent ends with the CLI's process and cannot resume after the turn parks. So
        if its call, or the call that starts it, needs approval, the call waits in the CLI for a limited time or is
        denied.
        """
        name = self.custom_tools.own_name(call.name)
        decision = await self._turn.gate.decide(name, call.input, directory=directory, agent=agent)
        if (
            decision.outcome is PermissionOutcome.ASK
            and self.waits_in_cli(call, agent)
            and not self.subagent_approvals.is_enabled
        ):
            return replace(decision, outcome=PermissionOutcome.DENY, reason=f"{decision.reason} {CANNOT_WAIT}")
        return decision

    def make_use_event(
        self, call: Call, calls: ThreadCalls, names: ToolNames, decision: Decision, directory: str | None
    ) -> tuple[Event, list[Entry]]:
        """The event of a call as the model wrote it, without the CLI's defaults. If the turn parks for the call, its
        approval mark is returned too.
        """
        renamed = (
            replace(call, name=self.custom_tools.own_name(call.name))
            if self.custom_tools.is_custom(call.name)
            else call
        )
        use = threads.call_in_thread(
            sdk_message_parser.tool_use_event(renamed, names, decision), calls.thread_id, calls.agent
        )
        if not ev.needs_approval(use) or self.waits_in_cli(call, calls.agent):
            return use, []
        self._requests[call.id] = use
        return use, [approvals.pending_mark(self._turn.turn_id, call.id, use, directory=directory)]

    async def ask_client(self, call_id: str, name: str, calls: CallTracker) -> bool:
        """Asks the client to run a custom tool call, once. From then on, only the turn's next attempt waits for the
        call. Returns False if the call was not permitted.
        """
        if not calls.claim_start(call_id, name):
            return False
        call = self._expected_custom_calls[call_id]
        try:
            if self.custom_tools.session_tool(name) is not None:
                event = await self._session_tools.start_waiting(call.input, call_id=call_id)
            else:
                event = self.custom_tools.use_event(call, self._turn.caller_context)
                await self._turn.log.append([event])
            self._requests[call_id] = event
        except FootplateError as error:
            calls.fail(error)
            raise
        await calls.close_calls([call_id])
        return True

    async def run_session_tool(
        self, name: str, arguments: JsonObject, use: Event, calls: CallTracker
    ) -> SessionToolResult:
        """Makes a call that the gate permitted and that is logged."""
        try:
            self._turn.log.check()
            return await self._session_tools.run(name, arguments, use.id)
        except FootplateError as error:
            calls.fail(error)
            raise

    async def wait_before_request(self, calls: CallTracker) -> None:
        """Called when the CLI has finished the calls of a response. Returns when the CLI may send the next model
        request. Never returns if calls wait for the client: the turn parks then.
        """
        if self._requests:
            await calls.wait_until_calls_closed()
            self.parked.set()
            await asyncio.wait({calls.failed})  # does not cancel the shared future
            calls.failed.result()
        elif self.before_next_request is not None:
            await self.before_next_request()

    @property
    def pending_event_ids(self) -> Sequence[str]:
        """Ids of the events that wait for the client."""
        return [event.id for event in self._requests.values()]

    def is_placeholder(self, line: JsonObject) -> bool:
        """Whether a transcript line is a placeholder result or a child of one. Such lines are not logged."""
        fact = transcript_lines.parse_line(line) if self._requests else None
        has_only_placeholders = isinstance(fact, ToolResults) and all(
            result.call_id in self._requests for result in fact.results
        )
        if not has_only_placeholders and line.get("parentUuid") not in self._withheld_uuids:
            return False
        self._withheld_uuids.add(str(line.get("uuid")))
        return True

    def refused_event(self, call: Call, names: ToolNames) -> Event:
        """The event of a call that the CLI itself refused, under the tool's own name."""
        return sdk_message_parser.tool_use_event(
            replace(call, name=self.custom_tools.own_name(call.name)), names, NOT_EVALUATED
        )
