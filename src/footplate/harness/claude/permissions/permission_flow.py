"""Decides whether a tool call that the Claude Code CLI requests may start, and logs the call before it starts.

The calls of one thread (the agent, or one subagent) run one at a time.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Final, Protocol

from footplate import failpoints
from footplate.domain.agents.mcp_servers import ToolNames
from footplate.domain.errors import Temporary
from footplate.domain.policy.permissions import Decision, PermissionOutcome
from footplate.domain.ports.harness import Entry, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event
from footplate.harness import approvals
from footplate.harness.claude.permissions import subagent_approvals
from footplate.harness.claude.permissions.pending_calls import WAITING_FOR_PERSON, PendingCalls
from footplate.harness.claude.threads.subagents import TurnSubagents
from footplate.harness.claude.threads.thread_calls import SUBAGENT_TOOLS, ThreadCalls, check_same_call
from footplate.harness.claude.transcripts.sdk_message_parser import Call

_FAILPOINT_DELAY: Final = 0.05
_EDITED_INPUT: Final = (
    "The user wants a different input for this call, but the input of a subagent's call cannot be changed. "
    "Make the call again with this input: {given}"
)


class TurnCalls(Protocol):
    """The turn's calls. Implemented by the recorder."""

    names: ToolNames

    def calls_of(self, agent_id: str | None) -> ThreadCalls | None: ...
    async def wait_until(self, reached: Callable[[], bool], expected: str | None) -> None: ...
    async def close_calls(self, call_ids: Sequence[str] = ()) -> None: ...
    def spawn(self, work: Coroutine[None, None, None]) -> None: ...


class PermissionFlow:
    def __init__(
        self, turn: TurnContext, turn_calls: TurnCalls, pending_calls: PendingCalls, subagents: TurnSubagents
    ) -> None:
        self._turn = turn
        self._turn_calls = turn_calls
        self._pending_calls = pending_calls
        self._subagents = subagents

    async def authorize(self, call: Call, agent_id: str | None, directory: str | None) -> str | None:
        """Returns None when the call may start, and otherwise the reason for the model. Before it returns None, the
        call and everything that led to it are logged. `agent_id`: the subagent that makes the call. Each thread has its
        own queue, because a subagent works while the call that started it is running.
        """
        turn_calls = self._turn_calls
        await turn_calls.wait_until(
            lambda: turn_calls.calls_of(agent_id) is not None, "the call that started a subagent"
        )
        calls = turn_calls.calls_of(agent_id)
        assert calls is not None
        async with calls.turnstile:
            await turn_calls.wait_until(lambda: call.id in calls.open, "a response with a tool call")
            await turn_calls.wait_until(lambda: calls.can_run_now(call), None)
            self._check_call(call, calls)
            await failpoints.hit("before_intent")
            logged_call, decision = await self._decide(call, calls, directory)
            denied = decision.outcome is PermissionOutcome.DENY
            if not denied and await self._pending_calls.expect_custom_call(logged_call):
                calls.running.add(call.id)
                return None
            question = None if denied else self._pending_calls.make_question(calls.open[call.id])
            use, marks = (
                (question, list[Entry]())
                if question is not None
                else self._pending_calls.make_use_event(logged_call, calls, turn_calls.names, decision, directory)
            )
            waits_in_cli = ev.needs_approval(use) and not marks
            start_events = [] if denied or waits_in_cli else self._subagents.start(logged_call)
            await self._turn.log.append(
                [use, *start_events, *(_waiting_events(calls, use) if waits_in_cli else [])], entries=marks
            )
            if marks or question is not None:
                await failpoints.hit("after_ask")
                await turn_calls.close_calls([call.id])
                return WAITING_FOR_PERSON
            if waits_in_cli:
                calls.use_events[call.id] = use
            else:
                calls.mark_running(call, use)
            if denied:
                calls.deny(call.id)
                return decision.refusal
            if not waits_in_cli:
                await failpoints.hit("after_intent")
        if waits_in_cli:
            await failpoints.hit("after_ask")
            return await self._wait_for_approval(call, logged_call, calls, use, directory)
        turn_calls.spawn(failpoints.hit_later("in_tool", _FAILPOINT_DELAY))
        return None

    def _check_call(self, call: Call, calls: ThreadCalls) -> None:
        """Raises `Temporary` unless this is the call that the model made, for the first time."""
        if call.id in calls.use_events:
            raise Temporary(f"Claude Code tried to run the call {call.id[:100]!r} twice. The turn was stopped.")
        is_exact = (
            self._pending_calls.custom_tools.is_custom(call.name)
            or self._turn_calls.names.resolve(call.name) is not None
        )
        check_same_call(call, calls.open[call.id], exact=is_exact or call.name in SUBAGENT_TOOLS)

    async def _decide(self, call: Call, calls: ThreadCalls, directory: str | None) -> tuple[Call, Decision]:
        """The call to log, and the decision on it.

        Claude Code runs the call as it passes it here, with its own defaults. After a wait for approval, the worker
        runs the call as it is in the transcript. In that case the person is shown the transcript's version, and rules
        that deny that version apply.
        """
        decision = await self._pending_calls.decide(call, directory, calls.agent)
        written = calls.open[call.id]
        if (
            decision.outcome is not PermissionOutcome.ASK
            or self._pending_calls.waits_in_cli(call, calls.agent)
            or written == call
        ):
            return call, decision
        written_decision = await self._pending_calls.decide(written, directory, calls.agent)
        return written, written_decision if written_decision.outcome is PermissionOutcome.DENY else decision

    async def _wait_for_approval(
        self, call: Call, logged_call: Call, calls: ThreadCalls, use: Event, directory: str | None
    ) -> str | None:
        """Waits for approval while other calls of the thread run. The rules are evaluated again afterwards, because
        they may have changed.
        """
        decision = await self._pending_calls.subagent_approvals.wait_for_decision(use)
        async with calls.turnstile:
            await self._turn_calls.wait_until(lambda: calls.can_run_now(call), None)
            await failpoints.hit("before_intent")
            refusal = await self._refusal_reason(call, calls, decision, directory)
            if call.id not in calls.open:
                return subagent_approvals.SUBAGENT_ENDED  # the turn has ended and has already logged a result
            running_events = [threads.running(calls.thread_id, calls.agent or "")] if calls.thread_id else []
            if refusal is not None:
                await self._turn.log.append(running_events)
                calls.mark_running(call, use)
                calls.deny(call.id)
                return refusal
            mark = approvals.started_mark(self._turn.turn_id, call.id, use)
            await self._turn.log.append([*running_events, *self._subagents.start(logged_call)], entries=[mark])
            calls.mark_running(call, use)
            await failpoints.hit("after_intent")
        self._turn_calls.spawn(failpoints.hit_later("in_tool", _FAILPOINT_DELAY))
        return None

    async def _refusal_reason(
        self, call: Call, calls: ThreadCalls, approval: Event, directory: str | None
    ) -> str | None:
        """Why a call does not run after its wait. None if it may run."""
        if not approvals.is_approved(approval):
            return approvals.denial_message(approval)
        if (edited := approvals.edited_input(approval)) is not None:
            return _EDITED_INPUT.format(given=edited)
        decision = await self._pending_calls.decide(call, directory, calls.agent)
        return decision.refusal if decision.outcome is PermissionOutcome.DENY else None


def _waiting_events(calls: ThreadCalls, use: Event) -> list[Event]:
    """The status event of a waiting subagent thread. The session itself is still running."""
    return [threads.waiting(calls.thread_id, calls.agent or "", [use.id])] if calls.thread_id else []
