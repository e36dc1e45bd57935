"""The `shell` harness: runs one command in the environment, without a model.

The command is the text of the message, or of a shell step. It is a call of the tool `bash`: the gate decides on it, it
may need approval, and it is in the log before it starts. A call that a lost worker left without a result is not run
again, because it may have taken effect.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from footplate import failpoints
from footplate.domain.errors import HandOver, Permanent
from footplate.domain.json import Json, JsonObject, as_object, as_objects
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.domain.ports.harness import CommandResult, FullOutput, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import steps
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness import approvals, turn_outcome_factories
from footplate.harness.interrupt import Interrupted, unless_interrupted
from footplate.harness.native.toolset import builtin_tools, output_overflow, post_tool_hooks
from footplate.harness.native.toolset.builtin_tools import ToolOutput
from footplate.harness.recovery_text import INTERRUPTED, UNKNOWN
from footplate.harness.tool_calls import command_details
from footplate.harness.tool_calls.command_details import UnfinishedStatus

TOOL: Final = command_details.BASH
DEFAULT_TIMEOUT: Final = 600.0
LOGGED_CHARACTERS: Final = 16_000
"""Characters of each stream that are in the log. Longer output is in the object store."""
_NOT_RUN: Final = "Not run: the user interrupted the turn. The command had no effect."


class ShellHarness:
    async def run(self, turn: TurnContext) -> TurnOutcome:
        return await _CommandRun(turn).run()


class _CommandRun:
    def __init__(self, turn: TurnContext) -> None:
        self._turn = turn
        self._use = next((event for event in turn.turn_events if event.type == ev.AGENT_TOOL_USE), None)

    async def run(self) -> TurnOutcome:
        if (recorded := self._recorded_result()) is not None:
            outcome = _outcome_of(recorded)
            is_interrupted = _command_details(outcome).get("status") == "interrupted"
            return turn_outcome_factories.interrupted("") if is_interrupted else outcome
        use = self._use
        if use is None:
            return await self._start()
        if not ev.needs_approval(use):
            return await self._record(use, builtin_tools.failed_output(UNKNOWN), "unknown")
        return await self._continue_after_approval(use)

    def _recorded_result(self) -> Event | None:
        return next((event for event in self._turn.turn_events if event.type == ev.AGENT_TOOL_RESULT), None)

    async def _start(self) -> TurnOutcome:
        turn = self._turn
        call_input: JsonObject = {"command": _command_of(turn.content)}
        if turn.interrupt.is_set():
            return turn_outcome_factories.interrupted("")
        if turn.handover.is_set():
            raise HandOver
        await turn.environment.ensure_open()
        await failpoints.hit("before_intent")
        decision = await turn.gate.decide(TOOL, call_input)
        use = self._mark(ev.tool_use(TOOL, call_input, call_id=turn.turn_id, decision=decision))
        if decision.outcome is PermissionOutcome.DENY:
            return await self._record(use, builtin_tools.failed_output(decision.refusal), "denied", before=[use])
        await turn.log.append([use])
        if ev.needs_approval(use):
            await failpoints.hit("after_ask")
            return turn_outcome_factories.awaiting([use.id])
        await failpoints.hit("after_intent")
        return await self._execute(use, call_input)

    async def _continue_after_approval(self, use: Event) -> TurnOutcome:
        turn = self._turn
        if any(event.type == steps.CALL_STARTED for event in turn.turn_events):
            return await self._record(use, builtin_tools.failed_output(UNKNOWN), "unknown")
        if turn.interrupt.is_set():
            return await self._interrupt(use, approvals.INTERRUPTED_WHILE_PENDING)
        decision = approvals.decisions_by_request(turn.turn_events).get(use.id)
        if decision is None:
            return turn_outcome_factories.awaiting([use.id])
        if not approvals.is_approved(decision):
            return await self._record(use, builtin_tools.failed_output(approvals.denial_message(decision)), "denied")
        shown = use.body.get("input")  # not built anew: results of other steps may have changed since
        call_input = approvals.edited_input(decision) or as_object(shown)
        await turn.environment.ensure_open()
        await failpoints.hit("before_intent")
        gated = await turn.gate.decide(TOOL, call_input)
        if gated.outcome is PermissionOutcome.DENY:
            return await self._record(use, builtin_tools.failed_output(gated.refusal), "denied")
        await turn.log.append([Event(steps.CALL_STARTED, {"tool_use_id": use.id})])
        await failpoints.hit("after_intent")
        return await self._execute(use, call_input)

    async def _execute(self, use: Event, call_input: JsonObject) -> TurnOutcome:
        turn = self._turn
        timeout = (turn.step.definition.timeout_seconds if turn.step else None) or DEFAULT_TIMEOUT
        command = str(call_input.get("command") or "")
        try:
            result = await unless_interrupted(turn.interrupt, self._run_command(use, command, timeout))
        except Interrupted:
            return await self._interrupt(use, INTERRUPTED)
        output = builtin_tools.describe_command(
            replace(result, full_outputs=_long_outputs(result)), timeout, logged_characters=LOGGED_CHARACTERS
        )
        output = await output_overflow.store_full_output(output, turn.log)
        output = await post_tool_hooks.add_hook_feedback(turn, TOOL, call_input, output, turn.turn_id)
        await failpoints.hit("before_result_commit")
        return await self._record(use, output)

    async def _run_command(self, use: Event, command: str, timeout: float) -> CommandResult:  # noqa: ASYNC109
        turn = self._turn
        if turn.step is None or not turn.step.definition.in_terminal:
            return await turn.environment.shell(command, timeout=timeout)
        if turn.terminals is None:
            raise Permanent("This worker offers no terminals.", help_text="Upgrade the worker.")
        terminal = await turn.terminals.open_terminal(use.id, command=command)
        try:
            async with asyncio.timeout(timeout):
                return await terminal.run_to_end()
        except TimeoutError:
            return await terminal.stop("timed out", timed_out=True)
        finally:
            await terminal.stop("interrupted")

    async def _interrupt(self, use: Event, text: str) -> TurnOutcome:
        await self._record(use, builtin_tools.failed_output(text), "interrupted")
        return turn_outcome_factories.interrupted("")

    async def _record(
        self, use: Event, output: ToolOutput, status: UnfinishedStatus | None = None, *, before: Sequence[Event] = ()
    ) -> TurnOutcome:
        """Commits the result of the call. `status`: why there is no exit code."""
        command = output.command
        if status is not None:
            command = command_details.without_exit_code(status, _text_of(output.content))
        event = self._mark(
            ev.tool_result_for(
                use, output.content, is_error=output.is_error, call_id=self._turn.turn_id, command=command
            )
        )
        await self._turn.log.append([*before, event])
        await failpoints.hit("after_result_commit")
        return _outcome_of(event)

    def _mark(self, event: Event) -> Event:
        """Returns the event with the id of its step."""
        return steps.in_step(event, self._turn.step)


def _long_outputs(result: CommandResult) -> Mapping[str, FullOutput]:
    streams = {"stdout": result.stdout, "stderr": result.stderr}
    long = {name: command_details.BytesOutput(data) for name, data in streams.items() if len(data) > LOGGED_CHARACTERS}
    return {**long, **result.full_outputs}


def _outcome_of(result: Event) -> TurnOutcome:
    command, content = result.body.get("command"), result.body.get("content")
    details = as_object(command)
    text = _text_of(content if isinstance(content, list) else [])
    return TurnOutcome(
        status=TurnStatus.COMPLETED,
        text=text,
        error_message=None if details.get("status") == "completed" else _failure_text(details),
        data={"command": details},
        step_failed=details.get("status") != "completed",
        may_retry=details.get("status") not in {"denied", "unknown"},
    )


def _command_details(outcome: TurnOutcome) -> JsonObject:
    command = outcome.data.get("command")
    return as_object(command)


def _failure_text(details: Mapping[str, Json]) -> str:
    if details.get("error"):
        return str(details["error"])
    if details.get("status") == "timed_out":
        return "The command timed out."
    code = details.get("exit_code")
    return "The shell exited before the command ended." if code is None else f"The command exited with code {code}."


def _text_of(content: Sequence[Json]) -> str:
    return "\n".join(str(block.get("text") or "") for block in as_objects(content))


def _command_of(content: Sequence[JsonObject]) -> str:
    texts = [block.get("text") for block in content]
    command = "\n".join(text for text in texts if isinstance(text, str))
    if not command.strip() or any(not isinstance(text, str) for text in texts):
        raise Permanent(
            "The harness 'shell' runs the text of a message as a command, and this message has none.",
            help_text="Send a message with text blocks only.",
        )
    return command
