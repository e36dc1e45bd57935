"""The `delivery` harness: merges the session's work into a branch of its project, or pushes it as a branch.

In the log, the delivery is a call of a tool. Each update of the branch is in the log before it is made, so a worker
that continues the turn after a crash changes nothing twice, and reports what the lost one did.
"""

import asyncio
import time
from dataclasses import replace
from typing import Final, Literal

from footplate import failpoints
from footplate.domain.errors import HandOver, InvalidRequest, NotFound, Permanent, Refused
from footplate.domain.files.delivery import DeliveryResult, MergeConflict, NothingToDeliver, TurnDelivery
from footplate.domain.json import JsonObject, as_object, as_objects
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import steps
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.steps import StepDelivery, StepKind
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness import turn_outcome_factories
from footplate.harness.tool_calls import command_details

TOOLS: Final = {StepKind.MERGE: "merge_branch", StepKind.PUSH: "push_branch"}
_SHOWN_CHARACTERS: Final = 7
_PHRASES: Final = {
    "merged": "merged into {}: {}",
    "fast_forwarded": "merged into {} (fast-forward): {}",
    "pushed": "pushed as {}: {}",
    "unchanged": "nothing to do, all changes are already in {}: {}",
}
_INTERRUPTED: Final = "Not delivered: the user interrupted the step. Nothing was changed."
_LASTING_REASONS: Final = (MergeConflict, NothingToDeliver, InvalidRequest, NotFound)
"""Errors that do not go away by themselves."""


class DeliveryHarness:
    opens_late: Literal[True] = True

    async def run(self, turn: TurnContext) -> TurnOutcome:
        wanted = turn.step.definition.delivery if turn.step is not None else None
        if wanted is None or turn.delivery is None:
            raise Permanent("The harness 'delivery' runs only steps that deliver.", help_text="Choose another harness.")
        return await _DeliveryRun(turn, turn.delivery, wanted).run()


class _DeliveryRun:
    def __init__(self, turn: TurnContext, delivery: TurnDelivery, wanted: StepDelivery) -> None:
        self._turn = turn
        self._delivery = delivery
        self._wanted = wanted
        updates = [
            as_object(event.body.get("update")) for event in turn.turn_events if event.type == steps.CALL_STARTED
        ]
        self._updates = [DeliveryResult.load(update) for update in updates]

    async def run(self) -> TurnOutcome:
        turn = self._turn
        if (recorded := self._find(ev.AGENT_TOOL_RESULT)) is not None:
            return _outcome_of(recorded)
        use = self._find(ev.AGENT_TOOL_USE)
        if use is None:
            if turn.interrupt.is_set():
                return turn_outcome_factories.interrupted("")
            if turn.handover.is_set():
                raise HandOver
            use = await self._log_call()
        started = time.monotonic()
        try:
            result = await self._deliver(use)
        except Refused as error:
            conflict = error if isinstance(error, MergeConflict) else None
            return await self._record(
                *(use, started, "failed"),
                error=_describe_refusal(error),
                may_retry=not isinstance(error, _LASTING_REASONS),
                conflict=conflict,
            )
        if result is None:
            return await self._record(use, started, "interrupted", error=_INTERRUPTED)
        await failpoints.hit("before_result_commit")
        return await self._record(use, started, "completed", result=result)

    def _find(self, event_type: str) -> Event | None:
        return next((event for event in self._turn.turn_events if event.type == event_type), None)

    async def _log_call(self) -> Event:
        step = self._turn.step
        assert step is not None
        kind, message = step.definition.kind, "".join(str(block.get("text") or "") for block in self._turn.content)
        fields = replace(self._wanted, message=message or None).dump(kind)  # with references replaced
        call_input: JsonObject = {name: value for name, value in fields.items() if value is not None}
        use = self._mark(ev.tool_use(TOOLS[kind], call_input, call_id=self._turn.turn_id))
        await self._turn.log.append([use])
        await failpoints.hit("after_intent")
        return use

    async def _deliver(self, use: Event) -> DeliveryResult | None:
        """Returns None if the turn was interrupted before an update of the branch had begun. An update that has begun
        is finished, because its outcome would be unknown otherwise.
        """

        async def record_update(update: DeliveryResult) -> None:
            self._updates.append(update)
            await self._turn.log.append([Event(steps.CALL_STARTED, {"tool_use_id": use.id, "update": update.dump()})])

        work = asyncio.ensure_future(self._delivery.deliver(tuple(self._updates), record_update))
        interrupt = asyncio.ensure_future(self._turn.interrupt.wait())
        try:
            await asyncio.wait({work, interrupt}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not self._updates:
                return None
            return await work
        finally:
            interrupt.cancel()
            work.cancel()  # does nothing if it is done
            await asyncio.wait({work})

    async def _record(
        self,
        use: Event,
        started: float,
        status: str,
        *,
        result: DeliveryResult | None = None,
        error: str | None = None,
        may_retry: bool = True,
        conflict: MergeConflict | None = None,
    ) -> TurnOutcome:
        """Commits the result of the call."""
        commit = "" if result is None else result.commit
        command = command_details.describe_command(
            status,
            None,
            duration_ms=round((time.monotonic() - started) * 1000),
            error=error,
            stdout=command_details.describe_stream(commit, len(commit)),
            stderr=command_details.describe_stream("", 0),
        )
        if not may_retry:
            command["may_retry"] = False
        if conflict is not None:
            command |= {"branch": conflict.branch, "conflicts": conflict.fields["conflicts"]}
        text = (error or "") if result is None else _describe(result)
        event = ev.tool_result(
            use.id, [ev.text_block(text)], is_error=result is None, call_id=self._turn.turn_id, command=command
        )
        await self._turn.log.append([self._mark(event)])
        await failpoints.hit("after_result_commit")
        return _outcome_of(event)

    def _mark(self, event: Event) -> Event:
        """Returns the event with the id of its step."""
        return steps.in_step(event, self._turn.step)


def _describe_refusal(error: Refused) -> str:
    """Returns the message and the help text. The conflicts of a merge are on lines of their own."""
    lines = [line.strip() for line in error.message.splitlines()]
    return error.advice if len(lines) == 1 else "\n".join([*lines, error.help_text])


def _describe(result: DeliveryResult) -> str:
    return _PHRASES[result.status].format(result.branch, result.commit[:_SHOWN_CHARACTERS])


def _outcome_of(result: Event) -> TurnOutcome:
    command: JsonObject = as_object(result.body.get("command"))
    if command.get("status") == "interrupted":
        return turn_outcome_factories.interrupted("")
    text = "\n".join(str(block.get("text") or "") for block in as_objects(result.body.get("content")))
    has_failed = command.get("status") != "completed"
    return TurnOutcome(
        status=TurnStatus.COMPLETED,
        text=text,
        error_message=text if has_failed else None,
        data={
            "command": command,
            **{name: command[name] for name in ("branch", "conflicts") if name in command},
        },
        step_failed=has_failed,
        may_retry=command.get("may_retry") is not False,
    )
