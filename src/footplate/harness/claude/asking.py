"""Tracks the calls of a turn that wait for the client (custom tools) or for a person (calls that need approval).

The CLI must not wait for a person, because it and its worker would have to live for days. So the CLI at once receives a
placeholder as the call's result, and continues with the other calls of the response. The placeholder is never logged.
When all calls are done, and before the CLI sends the next model request, the turn parks. When the client has responded,
the turn resumes on any host, with the real results in the transcript instead of the placeholders.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from footplate.domain import events as ev
from footplate.domain import threads
from footplate.domain.errors import FootplateError
from footplate.domain.events import Event
from footplate.domain.json import JsonObject
from footplate.domain.mcp import Names
from footplate.domain.permissions import NOT_JUDGED, Decision, Outcome
from footplate.domain.ports import Entry, TurnContext
from footplate.harness import approvals
from footplate.harness.claude import mapping, subagents, transcript
from footplate.harness.claude.calls import DELEGATING
from footplate.harness.claude.calls import Calls as ThreadCalls
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.holding import NO_WAIT, Holding
from footplate.harness.claude.mapping import Answered, Call

ASKED: Final = "This call is waiting for approval."
"""The placeholder result for the CLI. It is never logged or sent to the model."""


class Calls(Protocol):
    """Tracks the turn's other calls. Implemented by the recorder."""

    failed: "asyncio.Future[None]"

    def starts(self, call_id: str, name: str) -> bool: ...
    def fail(self, error: FootplateError) -> None: ...
    def close_calls(self, call_ids: Sequence[str]) -> Awaitable[None]: ...
    def calls_closed(self) -> Awaitable[None]: ...


class Asking:
    def __init__(self, turn: TurnContext, hold_seconds: float = 0.0) -> None:
        self._turn = turn
        self.holding = Holding(turn, hold_seconds)
        self.tools = CustomTools(turn.config)
        self.over = asyncio.Event()
        """Set when the turn has nothing to do but wait for the client."""
        self.between: Callable[[], Awaitable[None]] | None = None
        """Called between the last call of a response and the next model request."""
        self._expected: dict[str, Call] = {}
        self._asked: dict[str, Event] = {}
        self._withheld: set[str] = set()

    def expect(self, call: Call) -> bool:
        """Whether the call is a custom tool's. If so, the client is asked when the CLI makes the call, because hooks
        may still stop it before.
        """
        if not self.tools.has(call.name):
            return False
        self._expected[call.id] = call
        return True

    def refuses(self, call: Call) -> str | None:
        """Why this call is refused regardless of the gate's decision, as a message for the model."""
        return subagents.refusal(call, self._turn.config.subagents)

    @staticmethod
    def holds(call: Call, agent: str | None) -> bool:
        """Whether the call would wait for approval inside the CLI instead of parking the turn."""
        return agent is not None or call.name in DELEGATING

    async def judged(self, call: Call, directory: str | None, agent: str | None = None) -> Decision:
        """The gate's decision on a call of the CLI. Custom tools are evaluated under their own names. `agent`: the
        subagent that makes the call. A subagent ends with the CLI's process and cannot resume after the turn parks. So
        if its call, or the call that starts it, needs approval, the call waits in the CLI for a limited time or is
        denied.
        """
        name = self.tools.own(call.name)
        decision = await self._turn.gate.decide(name, call.input, directory=directory, agent=agent)
        if decision.outcome is Outcome.ASK and self.holds(call, agent) and not self.holding.possible:
            return replace(decision, outcome=Outcome.DENY, reason=f"{decision.reason} {NO_WAIT}")
        return decision

    def use(
        self, call: Call, calls: ThreadCalls, names: Names, decision: Decision, directory: str | None
    ) -> tuple[Event, list[Entry]]:
        """The event of a call as the model wrote it, without the CLI's defaults. If the turn parks for the call, its
        approval mark is returned too.
        """
        renamed = replace(call, name=self.tools.own(call.name)) if self.tools.has(call.name) else call
        use = threads.asking(mapping.tool_use(renamed, names, decision), calls.thread_id, calls.agent)
        if not ev.asks(use) or self.holds(call, calls.agent):
            return use, []
        self._asked[call.id] = use
        return use, [approvals.asked(self._turn.turn_id, call.id, use, directory=directory)]

    async def ask(self, call_id: str, name: str, calls: Calls) -> bool:
        """Asks the client to run a custom tool call, once. From then on, only the turn's next attempt waits for the
        call. Returns False if the call was not permitted.
        """
        if not calls.starts(call_id, name):
            return False
        call = self._expected[call_id]
        self._asked[call_id] = event = self.tools.use(call)
        try:
            await self._turn.log.append([event])
        except FootplateError as error:
            calls.fail(error)
            raise
        await calls.close_calls([call_id])
        return True

    async def pause(self, calls: Calls) -> None:
        """Called when the CLI has finished the calls of a response. Returns when the CLI may send the next model
        request. Never returns if calls wait for the client: the turn parks then.
        """
        if self._asked:
            await calls.calls_closed()
            self.over.set()
            await asyncio.wait({calls.failed})  # does not cancel the shared future
            calls.failed.result()
        elif self.between is not None:
            await self.between()

    @property
    def pending(self) -> Sequence[str]:
        """Ids of the events that wait for the client."""
        return [event.id for event in self._asked.values()]

    def withholds(self, line: JsonObject) -> bool:
        """Whether a transcript line is a placeholder result or a child of one. Such lines are not logged."""
        fact = transcript.fact_of(line) if self._asked else None
        has_only_placeholders = isinstance(fact, Answered) and all(result.call_id in self._asked for result in fact.results)
        if not has_only_placeholders and line.get("parentUuid") not in self._withheld:
            return False
        self._withheld.add(str(line.get("uuid")))
        return True

    def refused(self, call: Call, names: Names) -> Event:
        """The event of a call that the CLI itself refused, under the tool's own name."""
        return mapping.tool_use(replace(call, name=self.tools.own(call.name)), names, NOT_JUDGED)
