"""Decides whether a call of the CLI may start, and logs it first. Calls of a thread run one after the other."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Final, Protocol

from footplate import failpoints
from footplate.domain import events as ev
from footplate.domain import threads
from footplate.domain.errors import Temporary
from footplate.domain.events import Event
from footplate.domain.mcp import Names
from footplate.domain.permissions import Decision, Outcome
from footplate.domain.ports import TurnContext
from footplate.harness import approvals
from footplate.harness.claude import holding
from footplate.harness.claude.asking import ASKED, Asking
from footplate.harness.claude.calls import DELEGATING, Calls, check_same
from footplate.harness.claude.mapping import Call
from footplate.harness.claude.subagents import Subagents

_TOOL_STARTS: Final = 0.05
_EDITED: Final = (
    "The user would approve this call with a different input, but the input of a subagent's call cannot be changed. "
    "Make the call again with this input: {given}"
)


class Rest(Protocol):
    """The turn's calls. Implemented by the recorder."""

    names: Names

    def calls_of(self, agent_id: str | None) -> Calls | None: ...
    async def until(self, reached: Callable[[], bool], expected: str | None) -> None: ...
    async def close_calls(self, call_ids: Sequence[str] = ()) -> None: ...
    def spawn(self, work: Coroutine[None, None, None]) -> None: ...


class Letting:
    def __init__(self, turn: TurnContext, turn_calls: Rest, pending_calls: Asking, subagents: Subagents) -> None:
        self._turn = turn
        self._rest = turn_calls
        self._asking = pending_calls
        self._subagents = subagents

    async def intend(self, call: Call, agent_id: str | None, directory: str | None) -> str | None:
        """Returns None when the call may start, and otherwise the reason for the model. Before it returns None, the
        call and everything that led to it are logged. `agent_id`: the subagent that makes the call. Each thread has its
        own queue, because a subagent works while the call that started it is running.
        """
        turn_calls = self._rest
        await turn_calls.until(lambda: turn_calls.calls_of(agent_id) is not None, "the call that started a subagent")
        calls = turn_calls.calls_of(agent_id)
        assert calls is not None
        async with calls.turnstile:
            await turn_calls.until(lambda: call.id in calls.open, "a response with a tool call")
            await turn_calls.until(lambda: calls.lets(call), None)
            self._check(call, calls)
            await failpoints.hit("before_intent")
            logged_call, decision = await self._judged(call, calls, directory)
            denied = decision.outcome is Outcome.DENY
            if not denied and self._asking.expect(logged_call):
                calls.running.add(call.id)
                return None
            use, marks = self._asking.use(logged_call, calls, turn_calls.names, decision, directory)
            waits_in_cli = ev.asks(use) and not marks
            start_events = [] if denied or waits_in_cli else self._subagents.begin(logged_call)
            await self._turn.log.append([use, *start_events, *(_waiting(calls, use) if waits_in_cli else [])], entries=marks)
            if marks:
                await failpoints.hit("after_ask")
                await turn_calls.close_calls([call.id])
                return ASKED
            if waits_in_cli:
                calls.uses[call.id] = use
            else:
                calls.begin(call, use)
            if denied:
                calls.refuse(call.id)
                return decision.refusal
            if not waits_in_cli:
                await failpoints.hit("after_intent")
        if waits_in_cli:
            await failpoints.hit("after_ask")
            return await self._held(call, logged_call, calls, use, directory)
        turn_calls.spawn(failpoints.hit_later("in_tool", _TOOL_STARTS))
        return None

    def _check(self, call: Call, calls: Calls) -> None:
        """Raises `Temporary` unless this is the call that the model made, for the first time."""
        if call.id in calls.uses:
            raise Temporary(f"Claude Code tried to run the call {call.id[:100]!r} twice. The turn was stopped.")
        is_exact = self._asking.tools.has(call.name) or self._rest.names.of(call.name) is not None
        check_same(call, calls.open[call.id], exact=is_exact or call.name in DELEGATING)

    async def _judged(self, call: Call, calls: Calls, directory: str | None) -> tuple[Call, Decision]:
        """The call to log, and the decision on it.

        Claude Code runs the call as it passes it here, with its own defaults. After a wait for approval, the worker
        runs the call as it is in the transcript. In that case the person is shown the transcript's version, and rules
        that deny that version apply.
        """
        decision = await self._asking.judged(call, directory, calls.agent)
        written = calls.open[call.id]
        if decision.outcome is not Outcome.ASK or self._asking.holds(call, calls.agent) or written == call:
            return call, decision
        written_decision = await self._asking.judged(written, directory, calls.agent)
        return written, written_decision if written_decision.outcome is Outcome.DENY else decision

    async def _held(self, call: Call, logged_call: Call, calls: Calls, use: Event, directory: str | None) -> str | None:
        """Waits for approval while other calls of the thread run. The rules are evaluated again afterwards, because
        they may have changed.
        """
        decision = await self._asking.holding.word(use)
        async with calls.turnstile:
            await self._rest.until(lambda: calls.lets(call), None)
            await failpoints.hit("before_intent")
            refusal = await self._refusal(call, calls, decision, directory)
            if call.id not in calls.open:
                return holding.LOST  # the turn has ended and has already logged a result
            running_events = [threads.running(calls.thread_id, calls.agent or "")] if calls.thread_id else []
            if refusal is not None:
                await self._turn.log.append(running_events)
                calls.begin(call, use)
                calls.refuse(call.id)
                return refusal
            mark = approvals.started(self._turn.turn_id, call.id, use)
            await self._turn.log.append([*running_events, *self._subagents.begin(logged_call)], entries=[mark])
            calls.begin(call, use)
            await failpoints.hit("after_intent")
        self._rest.spawn(failpoints.hit_later("in_tool", _TOOL_STARTS))
        return None

    async def _refusal(self, call: Call, calls: Calls, approval: Event, directory: str | None) -> str | None:
        """Why a call does not run after its wait. None if it may run."""
        if not approvals.allows(approval):
            return approvals.denial(approval)
        if (edited := approvals.edited(approval)) is not None:
            return _EDITED.format(given=edited)
        decision = await self._asking.judged(call, directory, calls.agent)
        return decision.refusal if decision.outcome is Outcome.DENY else None


def _waiting(calls: Calls, use: Event) -> list[Event]:
    """The status event of a waiting subagent thread. The session itself is still running."""
    return [threads.waiting(calls.thread_id, calls.agent or "", [use.id])] if calls.thread_id else []
