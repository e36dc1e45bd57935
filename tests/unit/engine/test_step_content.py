"""Tests of the input of a turn that a step starts."""

from typing import cast

import pytest

from footplate.domain.errors import Permanent
from footplate.domain.json import JsonObject
from footplate.domain.ports.engine import Claim, TurnStore
from footplate.domain.ports.harness import TurnLog
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.steps import ClaimedStep, StepDefinition, StepKind
from footplate.engine.turn.step_content import prepare_step_content

TEXT = "cat ${steps.none.stdout} ${steps"


class Log:
    async def append(self, events: list[Event]) -> None:
        pass


class StepClaim:
    def __init__(self, definition: StepDefinition) -> None:
        self.step = ClaimedStep(id="step_1", position=1, definition=definition, attempt=1)


async def prepare(definition: StepDefinition) -> list[JsonObject]:
    claim, store, log = cast("Claim", StepClaim(definition)), cast("TurnStore", None), cast("TurnLog", Log())
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
