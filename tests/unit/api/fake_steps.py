"""In-memory fakes of the queues of sessions. Steps are added, changed and listed, and nothing runs them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from footplate.domain import ids
from footplate.domain.errors import Conflict, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import AcceptedInputs, PlaybackAction
from footplate.domain.sessions.steps import (
    TERMINAL,
    PauseReason,
    Playback,
    Step,
    StepDefinition,
    StepState,
    check_retry,
)


@dataclass
class StepWorld:
    steps: dict[str, list[Step]] = field(default_factory=dict)
    playback: dict[str, Playback] = field(default_factory=dict)
    results: dict[str, JsonObject] = field(default_factory=dict)


class FakeStepReads:
    step_world: StepWorld

    async def step(self, principal: Principal, session_id: str, step_id: str) -> Step:
        for step in self.step_world.steps.get(session_id, ()):
            if step.id == step_id:
                return step
        raise NotFound("step", step_id)

    async def steps(
        self, principal: Principal, session_id: str, *, states: Sequence[StepState], limit: int, after: int | None
    ) -> Sequence[Step]:
        found = self.step_world.steps.get(session_id, [])
        return [one for one in found if (not states or one.state in states) and one.sort_key > (after or 0)][:limit]

    async def playback(self, principal: Principal, session_id: str) -> Playback:
        return self.step_world.playback.get(session_id, Playback())


class FakeStepUnit(FakeStepReads):
    async def add_steps(
        self,
        principal: Principal,
        session_id: str,
        definitions: Sequence[tuple[StepDefinition, JsonObject]],
        *,
        before: str | None,
    ) -> tuple[Sequence[Step], AcceptedInputs]:
        queue = self.step_world.steps.setdefault(session_id, [])
        place = len(queue) if before is None else queue.index(await self.step(principal, session_id, before))
        added = [_create_step(session_id, definition) for definition, _ in definitions]
        self._set_order(session_id, [*queue[:place], *added, *queue[place:]])
        found = [await self.step(principal, session_id, step.id) for step in added]
        return found, _accepted(principal, session_id)

    async def edit_step(
        self, principal: Principal, session_id: str, step_id: str, change: Callable[[Step], StepDefinition]
    ) -> tuple[Step, AcceptedInputs]:
        old = await self._pending(principal, session_id, step_id)
        return await self._replace(principal, replace(old, definition=change(old)))

    async def move_step(
        self, principal: Principal, session_id: str, step_id: str, *, before: str | None
    ) -> tuple[Step, AcceptedInputs]:
        moved = await self._pending(principal, session_id, step_id)
        others = [step for step in self.step_world.steps[session_id] if step.id != step_id]
        place = len(others) if before is None else others.index(await self.step(principal, session_id, before))
        self._set_order(session_id, [*others[:place], moved, *others[place:]])
        return await self.step(principal, session_id, step_id), _accepted(principal, session_id)

    async def remove_step(self, principal: Principal, session_id: str, step_id: str) -> tuple[Step, AcceptedInputs]:
        old = await self._pending(principal, session_id, step_id)
        return await self._replace(principal, replace(old, state=StepState.CANCELLED))

    async def retry_step(
        self, principal: Principal, session_id: str, step_id: str, *, play: bool, check: Callable[[Step], None]
    ) -> tuple[Step, AcceptedInputs]:
        old = await self.step(principal, session_id, step_id)
        check(old)
        check_retry(old, None)
        copy = replace(old.definition, retry_of=step_id)
        (added,), accepted = await self.add_steps(principal, session_id, [(copy, {})], before=None)
        if play:
            await self.change_playback(principal, session_id, "play")
        return added, accepted

    async def open_terminal(self, principal: Principal, session_id: str) -> tuple[Step, AcceptedInputs]:
        (added,), accepted = await self.add_steps(principal, session_id, [(TERMINAL, {})], before=None)
        return added, accepted

    async def submit_result(
        self,
        principal: Principal,
        session_id: str,
        step_id: str,
        result: JsonObject,
        *,
        is_error: bool,
    ) -> tuple[Step, AcceptedInputs]:
        if self.step_world.results.setdefault(step_id, result) != result:
            raise Conflict("The result was already submitted.")
        return await self.step(principal, session_id, step_id), _accepted(principal, session_id)

    async def change_playback(
        self, principal: Principal, session_id: str, action: PlaybackAction
    ) -> tuple[Playback, AcceptedInputs]:
        paused = Playback(playing=False, next_steps=int(action == "next"), reason=PauseReason.REQUESTED)
        self.step_world.playback[session_id] = new = Playback() if action == "play" else paused
        return new, _accepted(principal, session_id)

    async def _pending(self, principal: Principal, session_id: str, step_id: str) -> Step:
        step = await self.step(principal, session_id, step_id)
        if step.state is not StepState.PENDING:
            raise Conflict(f"Step {step_id!r} is {step.state}.")
        return step

    async def _replace(self, principal: Principal, new: Step) -> tuple[Step, AcceptedInputs]:
        queue = self.step_world.steps[new.session_id]
        self.step_world.steps[new.session_id] = [new if step.id == new.id else step for step in queue]
        return new, _accepted(principal, new.session_id)

    def _set_order(self, session_id: str, order: Sequence[Step]) -> None:
        self.step_world.steps[session_id] = [replace(step, sort_key=key) for key, step in enumerate(order, 1)]


def _create_step(session_id: str, definition: StepDefinition) -> Step:
    return Step(
        id=ids.new_id(ids.STEP),
        session_id=session_id,
        position=1,
        sort_key=0,
        state=StepState.PENDING,
        definition=definition,
        is_message=False,
        attempt=0,
        turn_id=None,
        result=None,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        started_at=None,
        ended_at=None,
    )


def _accepted(principal: Principal, session_id: str) -> AcceptedInputs:
    return AcceptedInputs(organisation=principal.organisation, session_id=session_id)
