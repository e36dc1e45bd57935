"""The calls of a turn that wait for somebody: a custom tool's for the client, one that rules ask about for a person.

A CLI may not wait for a person: it would live for days, and its turn's worker with it. So it is told at once that the
client was asked, and goes on with the other calls of the answer; that word is no result, and never gets into the log.
When all of them are done, and before the CLI asks the model again, the turn ends. It goes on when the client has
answered, on whatever host, with the answers in the transcript in the place of what the CLI was told.
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

ASKED: Final = "A person was asked whether this call may be made, and has not answered yet."
"""What the CLI is told; nobody else hears it."""


class Calls(Protocol):
    """What has to be known of the turn's other calls. The recorder is."""

    failed: "asyncio.Future[None]"

    def starts(self, call_id: str, name: str) -> bool: ...
    def fail(self, error: FootplateError) -> None: ...
    def close_calls(self, call_ids: Sequence[str]) -> Awaitable[None]: ...
    def calls_closed(self) -> Awaitable[None]: ...


class Asking:
    def __init__(self, turn: TurnContext, hold: float = 0.0) -> None:
        self._turn = turn
        self.holding = Holding(turn, hold)
        self.tools = CustomTools(turn.config)
        self.over = asyncio.Event()
        """Nothing is left to do but to wait for the client."""
        self.between: Callable[[], Awaitable[None]] | None = None
        """What is to be done between the calls of an answer and the next one."""
        self._expected: dict[str, Call] = {}
        self._asked: dict[str, Event] = {}
        self._withheld: set[str] = set()

    def expect(self, call: Call) -> bool:
        """Is it the client's to answer? If so, it is asked when the CLI makes the call: nobody has stopped it then."""
        if not self.tools.has(call.name):
            return False
        self._expected[call.id] = call
        return True

    def refuses(self, call: Call) -> str | None:
        """Why this call will not be let through, whatever the gate says, for the model to read."""
        return subagents.refusal(call, self._turn.config.subagents)

    @staticmethod
    def holds(call: Call, agent: str | None) -> bool:
        """Would the call wait for a person in Claude Code's process, and not in the log?"""
        return agent is not None or call.name in DELEGATING

    async def judged(self, call: Call, directory: str | None, agent: str | None = None) -> Decision:
        """The gate's word, on what the CLI would do. Custom tools go by their own names. `agent`: the subagent that
        makes the call. Its work ends with the process, and cannot begin after a wait: where a person is asked, it and
        the call that asks for it are held for a while, or not let through.
        """
        name = self.tools.own(call.name)
        decision = await self._turn.gate.decide(name, call.input, directory=directory, agent=agent)
        if decision.outcome is Outcome.ASK and self.holds(call, agent) and not self.holding.possible:
            return replace(decision, outcome=Outcome.DENY, reason=f"{decision.reason} {NO_WAIT}")
        return decision

    def use(
        self, call: Call, calls: ThreadCalls, names: Names, decision: Decision, directory: str | None
    ) -> tuple[Event, list[Entry]]:
        """The call as the model said it: the CLI fills in what it left out. With a mark, if the turn parks for it."""
        own = replace(call, name=self.tools.own(call.name)) if self.tools.has(call.name) else call
        use = threads.asking(mapping.tool_use(own, names, decision), calls.thread_id, calls.agent)
        if not ev.asks(use) or self.holds(call, calls.agent):
            return use, []
        self._asked[call.id] = use
        return use, [approvals.asked(self._turn.turn_id, call.id, use, directory=directory)]

    async def ask(self, call_id: str, name: str, calls: Calls) -> bool:
        """Once; from here on nothing but the turn's next attempt waits for this call. False: it was not let through."""
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
        """The CLI is done with the calls of an answer. Returns when it may ask the model: not before the client."""
        if self._asked:
            await calls.calls_closed()
            self.over.set()
            await asyncio.wait({calls.failed})  # it is not ours to cancel
            calls.failed.result()
        elif self.between is not None:
            await self.between()

    @property
    def pending(self) -> Sequence[str]:
        """Ids of the events that the client has to answer."""
        return [event.id for event in self._asked.values()]

    def withholds(self, line: JsonObject) -> bool:
        """Is it what the CLI was told instead of a result, or does it hang on that?"""
        fact = transcript.fact_of(line) if self._asked else None
        told = isinstance(fact, Answered) and all(result.call_id in self._asked for result in fact.results)
        if not told and line.get("parentUuid") not in self._withheld:
            return False
        self._withheld.add(str(line.get("uuid")))
        return True

    def refused(self, call: Call, names: Names) -> Event:
        """A call that nobody was asked for, by its own name."""
        return mapping.tool_use(replace(call, name=self.tools.own(call.name)), names, NOT_JUDGED)
