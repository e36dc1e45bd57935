"""Builds the input of a turn from a step: replaces the references to results of earlier steps and to a payload."""

from collections.abc import Sequence
from typing import Final

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.json import JsonObject, as_objects
from footplate.domain.ports.engine import Claim, TurnStore
from footplate.domain.ports.harness import TurnLog
from footplate.domain.sessions import events, step_references, steps
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.step_references import Reference
from footplate.domain.sessions.steps import ChildRequest, ClaimedStep, StepKind
from footplate.gate.shell.step_references import substitute_references

_MAX_VALUE_BYTES: Final = 1 << 20


async def prepare_step_content(
    claim: Claim, store: TurnStore, log: TurnLog, turn_events: Sequence[Event]
) -> Sequence[JsonObject]:
    """Return the content blocks of the turn's step. A prompt is added to the log, as it is sent to the model."""
    step = claim.step
    if step is None:
        return ()
    try:
        content = await _StepText(step, store).build_content()
    except InvalidRequest as error:
        raise Permanent(error.message, help_text=error.help_text) from error
    is_logged = any(event.type == events.USER_MESSAGE and event.body.get("step_id") == step.id for event in turn_events)
    if step.definition.kind is StepKind.PROMPT and not is_logged:
        await log.append([steps.in_step(Event(events.USER_MESSAGE, {"content": [*content]}), step)])
    return content


class _StepText:
    """Replaces the references in the texts of one step."""

    def __init__(self, step: ClaimedStep, store: TurnStore) -> None:
        self._step = step
        self._store = store
        self._values: dict[str, str] = {}
        self._payload = step.definition.payload_values

    async def build_content(self) -> Sequence[JsonObject]:
        definition = self._step.definition
        if definition.is_literal:
            return definition.content or [events.text_block(definition.command)]
        if definition.kind is StepKind.EXTERNAL:
            return [events.text_block(await self._replace(definition.instructions))]
        if definition.delivery is not None:
            message = definition.delivery.message
            return [] if message is None else [events.text_block(await self._replace(message))]
        if definition.kind is StepKind.PARALLEL:
            return [await self._replace_in_request(request) for request in definition.requests if request.text]
        if definition.kind is StepKind.PROMPT:
            return [await self._replace_in_block(block) for block in definition.content]
        return [events.text_block(await self._replace_in_command(definition.command))]

    async def _replace_in_request(self, request: ChildRequest) -> JsonObject:
        text = request.text or ""
        is_command = request.steps[0].kind is StepKind.SHELL
        return events.text_block(await (self._replace_in_command(text) if is_command else self._replace(text)))

    async def _replace_in_command(self, command: str) -> str:
        await self._load_values(command)
        return substitute_references(command, self._value_of, with_payload=self._payload is not None)

    async def _replace_in_block(self, block: JsonObject) -> JsonObject:
        text = block.get("text")
        return {**block, "text": await self._replace(text)} if isinstance(text, str) else block

    async def _replace(self, text: str) -> str:
        await self._load_values(text)
        return step_references.replace_references(text, self._value_of, with_payload=self._payload is not None)

    def _value_of(self, reference: Reference) -> str:
        return self._values[reference.text]

    async def _load_values(self, text: str) -> None:
        found = step_references.find_references(text, where="step", with_payload=self._payload is not None)
        for reference in found:
            if reference.text not in self._values:
                self._values[reference.text] = await self._load_value(reference)

    async def _load_value(self, reference: Reference) -> str:
        if reference.path is not None:
            return self._payload_value(reference)
        found = self._step.results.get(reference.step)
        if found is None or found.turn_id is None:
            raise Permanent(
                f"{reference.text} refers to a step that has not run.",
                help_text="Add a step with that name before this one, or remove the reference.",
            )
        if reference.session is not None or (key := steps.object_of_stream(found, reference.field)) is None:
            value = _find_result(reference, steps.result_fields(found)).get(reference.field)
            return "" if value is None else str(value)
        data = await self._store.load_output(key, _MAX_VALUE_BYTES + 1)
        if len(data) > _MAX_VALUE_BYTES:
            raise Permanent(
                f"The value of {reference.text} has more than {_MAX_VALUE_BYTES} bytes.",
                help_text="Write the result to a file in the earlier step, and read the file in this one.",
            )
        return data.decode("utf-8", "replace")

    def _payload_value(self, reference: Reference) -> str:
        value = (self._payload or {}).get(reference.path or "")
        if value is None:
            raise Permanent(
                f"{reference.text} was added after the delivery, so the step does not have its value.",
                help_text="Use a reference that the step had when the trigger added it.",
            )
        return value


def _find_result(reference: Reference, fields: JsonObject) -> JsonObject:
    """Returns the result that has the field: that of the step, or of one of its sessions."""
    if reference.session is None:
        return fields
    sessions = as_objects(fields.get("sessions"))
    found = step_references.find_session(sessions, reference.session)
    if found is None:
        names = ", ".join(str(session.get("name") or index) for index, session in enumerate(sessions))
        raise Permanent(
            f"{reference.text} refers to a session that the step {reference.step!r} does not have.",
            help_text=f"Its sessions are {names}." if names else "Refer to a parallel step.",
        )
    return found
