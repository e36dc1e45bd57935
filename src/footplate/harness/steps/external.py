"""The `external` harness: waits until a client submits the result of work that it does itself.

For clients of the reference API, the step is a call of a custom tool, and the session waits for its result.
"""

from typing import Final

from footplate.domain.json import JsonObject, as_object
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import steps
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness import turn_outcome_factories
from footplate.harness.recovery_text import custom_tool_result

TOOL: Final = "external_step"
_NO_REASON: Final = "The step was reported as failed."


class ExternalHarness:
    async def run(self, turn: TurnContext) -> TurnOutcome:
        use = next((event for event in turn.turn_events if event.type == ev.AGENT_CUSTOM_TOOL_USE), None)
        result = next((event for event in turn.turn_events if event.type == ev.USER_CUSTOM_TOOL_RESULT), None)
        if use is not None and result is not None:
            blocks, is_error = custom_tool_result(result)
            text = "\n".join(str(block.get("text") or "") for block in blocks if isinstance(block, dict))
            submitted = as_object(result.body.get("command"))
            reason = text.strip() or steps.stream_text(submitted.get("stderr")).strip() or _NO_REASON
            return TurnOutcome(
                status=TurnStatus.COMPLETED,
                text=text,
                error_message=reason if is_error else None,
                data={"command": submitted} if submitted else {},
                step_failed=is_error,
            )
        if turn.interrupt.is_set():
            return turn_outcome_factories.interrupted("")
        if use is None:
            name = turn.step.definition.name if turn.step else None
            instructions = "\n".join(str(block.get("text") or "") for block in turn.content)
            call_input: JsonObject = {"name": name, "instructions": instructions}
            use = steps.in_step(ev.custom_tool_use(TOOL, call_input, call_id=turn.turn_id), turn.step)
            await turn.log.append([use])
        return turn_outcome_factories.awaiting([use.id])
