"""Tests of the input of a turn that a step starts."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

import pytest

from footplate.domain.errors import Permanent
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.engine import Claim, TurnStore
from footplate.domain.ports.harness import TurnLog
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.steps import ClaimedStep, Step, StepDefinition, StepDelivery, StepKind, StepState
from footplate.engine.turn.step_content import prepare_step_content

TEXT = "cat ${steps.none.stdout} ${steps"


class Log:
    async def append(self, events: list[Event]) -> None:
        pass


class StepClaim:
    def __init__(self, definition: StepDefinition, results: Mapping[str, Step]) -> None:
        self.step = ClaimedStep(id="step_1", position=1, definition=definition, attempt=1, results=results)


async def prepare(definition: StepDefinition, **results: Step) -> list[JsonObject]:
    claim, store, log = cast("Claim", StepClaim(definition, results)), cast("TurnStore", None), cast("TurnLog", Log())
    return [*await prepare_step_content(claim, store, log, ())]


@pytest.mark.parametrize("is_literal", [True, False])
@pytest.mark.parametrize("kind", [StepKind.SHELL, StepKind.PROMPT])
async def test_references_in_literal_texts_are_not_replaced(kind: StepKind, *, is_literal: bool) -> None:
    block: JsonObject = {"type": "text", "text": TEXT}
    definition = StepDefinition(
        kind=kind,
        command=TEXT if kind is StepKind.SHELL else "",
        content=(block,) if kind is StepKind.PROMPT else (),
        is_literal=is_literal,
    )
    if is_literal:
        assert await prepare(definition) == [block]
    else:
        with pytest.raises(Permanent):
            await prepare(definition)


def parallel_result() -> Step:
    now = datetime(2026, 11, 18, tzinfo=UTC)
    sessions: list[Json] = [
        {
            "index": 0,
            "name": "a",
            "text": "$(rm -r ~)\n",
            "outcome": "completed",
            "error": None,
            "session_id": "sesn_1",
        },
        {"index": 1, "name": None, "text": "b", "outcome": None, "error": "lost", "session_id": "sesn_2"},
    ]
    return Step(
        id="step_2",
        session_id="sesn_0",
        position=1,
        sort_key=1,
        state=StepState.COMPLETED,
        definition=StepDefinition(kind=StepKind.PARALLEL),
        is_message=False,
        attempt=1,
        turn_id="turn_1",
        result={"text": "both", "data": {"sessions": sessions}},
        created_at=now,
        started_at=now,
        ended_at=now,
    )


async def test_a_reference_to_one_session_is_replaced_by_its_field() -> None:
    reference = "${{steps.all.sessions.{}}}"
    fields = [reference.format(one) for one in ("a.text", "1.outcome", "1.error", "0.session_id")]
    shell = StepDefinition(kind=StepKind.SHELL, command=f"echo {' '.join(fields)}")
    assert await prepare(shell, all=parallel_result()) == [
        {"type": "text", "text": "echo '$(rm -r ~)\n' '' lost sesn_1"}
    ]
    delivery = StepDelivery(branch="main", message=f"Take {reference.format('1.text')}")
    merge = StepDefinition(kind=StepKind.MERGE, delivery=delivery)
    assert await prepare(merge, all=parallel_result()) == [{"type": "text", "text": "Take b"}]
    assert await prepare(StepDefinition(kind=StepKind.MERGE, delivery=StepDelivery())) == []
    unknown = StepDefinition(kind=StepKind.SHELL, command=f"echo {reference.format('c.text')}")
    with pytest.raises(Permanent, match="does not have"):
        await prepare(unknown, all=parallel_result())


async def test_values_of_a_payload_are_inserted_once_and_only_in_steps_of_a_trigger() -> None:
    values = {"title": "${steps.all.text} $(id)", "n": "3"}
    command = "echo ${payload.title} ${steps.all.text} ${payload.n}"
    shell = StepDefinition(kind=StepKind.SHELL, command=command, payload_values=values)
    assert await prepare(shell, all=parallel_result()) == [
        {"type": "text", "text": "echo '${steps.all.text} $(id)' both 3"}
    ]
    block: JsonObject = {"type": "text", "text": "See ${payload.title}"}
    prompt = StepDefinition(kind=StepKind.PROMPT, content=(block,), payload_values=values)
    assert await prepare(prompt) == [{"type": "text", "text": "See ${steps.all.text} $(id)"}]
    assert await prepare(StepDefinition(kind=StepKind.PROMPT, content=(block,))) == [block]
    for wrong in ("echo ${payload.other}", "echo '${payload.n}'", "eval ${payload.n}"):
        with pytest.raises(Permanent):
            await prepare(StepDefinition(kind=StepKind.SHELL, command=wrong, payload_values=values))
