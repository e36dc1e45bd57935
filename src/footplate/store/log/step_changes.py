"""Changes and reads the queue of a session: adds, edits, moves and removes steps, and plays or pauses the session.

Each change locks the session's head row, as every change to a session does. A step can be changed only while it is
pending; a claim takes the same lock, so a step that starts at the same time either has the change or refuses it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import orjson

from footplate.domain import audit
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.organisations.limits import LimitName
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import AcceptedInputs, Input, PlaybackAction, StepUnit
from footplate.domain.sessions import events, steps
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.steps import PauseReason, Playback, Step, StepDefinition, StepKind, StepState
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.log.inputs import append_events, append_inputs, check_accepts
from footplate.store.log.step_queue import ended_event, load_step, playback_event
from footplate.store.object_store import Objects
from footplate.store.resources.limits import LimitUnitOfWork
from footplate.store.row_mapping import Row
from footplate.telemetry import traces

MAX_DEFINITION_BYTES: Final = 60_000
_STATE_TEXTS: Final = {
    StepState.RUNNING: "is running",
    StepState.COMPLETED: "has completed",
    StepState.FAILED: "has failed",
    StepState.SKIPPED: "was skipped",
    StepState.CANCELLED: "was cancelled",
}
_PENDING_HELP: Final = "Only pending steps can be edited, moved and removed."
_RETRY_HELP: Final = f"{_PENDING_HELP} To repeat it, use `footplate steps retry`, and change the copy."


async def read_steps(
    database: Database,
    principal: Principal,
    session_id: str,
    *,
    states: Sequence[StepState] = (),
    limit: int = 1,
    after: int | None = None,
    step_id: str | None = None,
) -> Sequence[Step]:
    rows = await database.fetch(
        "steps",
        session_id=session_id,
        organisation=principal.organisation,
        states=list(states) or None,
        after=after,
        limit=limit,
        event_ids=None if step_id is None else [steps.event_id_of(step_id)],
    )
    return [load_step(row) for row in rows]


async def read_playback(database: Database, principal: Principal, session_id: str) -> Playback:
    row = await database.fetchrow("playback", session_id, principal.organisation)
    if row is None:
        raise NotFound("session", session_id)
    return load_playback(row)


def load_playback(row: Row) -> Playback:
    reason = row["pause_reason"]
    return Playback(row["playing"], row["next_steps"], None if reason is None else PauseReason(reason))


class StepUnitOfWork(LimitUnitOfWork, StepUnit):
    """The methods of a unit of work that change a queue."""

    _connection: Connection
    _objects: Objects
    _session_id: str | None

    async def add_steps(
        self,
        principal: Principal,
        session_id: str,
        definitions: Sequence[tuple[StepDefinition, JsonObject]],
        *,
        before: str | None,
    ) -> tuple[Sequence[Step], AcceptedInputs]:
        head = await self._lock_queue(principal, session_id)
        pending = await self._pending_positions(session_id)
        if len(pending) + len(definitions) > steps.MAX_PENDING:
            raise Conflict(
                f"The queue would have more than {steps.MAX_PENDING} pending steps.",
                help_text="Add more steps when some of these have run.",
            )
        await self.check_limit(principal, LimitName.QUEUED_STEPS, adding=len(definitions))
        new_events = [created_event(definition, before) for definition, _ in definitions]
        positions = await append_events(self._connection, principal.organisation, principal.id, session_id, new_events)
        for position, (definition, overrides) in zip(positions, definitions, strict=True):
            await self._connection.execute(
                *bind(
                    "insert_step",
                    session_id=session_id,
                    position=position.seq,
                    organisation=principal.organisation,
                    kind=definition.kind,
                    event_id=position.event.id,
                    overrides=overrides,
                    traceparent=traces.current_traceparent(),
                    name=definition.name,
                    definition=definition.dump(),
                )
            )
        if before is not None:
            added = [position.seq for position in positions]
            await self._reorder(session_id, _insert_before(pending, added, steps.event_id_of(before), before))
        accepted = await self._wake(principal, head, positions)
        rows = await self._connection.fetch(
            *bind(
                "steps",
                session_id=session_id,
                organisation=principal.organisation,
                states=None,
                after=None,
                limit=None,
                event_ids=[event.id for event in new_events],
            )
        )
        return [load_step(row) for row in rows], accepted

    async def edit_step(
        self, principal: Principal, session_id: str, step_id: str, change: Callable[[Step], StepDefinition]
    ) -> tuple[Step, AcceptedInputs]:
        head = await self._lock_queue(principal, session_id)
        old = await self._pending_step(principal, session_id, step_id)
        if old.is_message:
            raise InvalidRequest(
                f"Step {step_id!r} is a message that was sent as an event, and cannot be edited.",
                help_text="Remove it, and add a step.",
            )
        new = change(old)
        _check_size(new)
        await self._connection.execute(
            SQL["edit_step"],
            session_id,
            old.position,
            new.name,
            new.dump(),
            principal.id,
        )
        return await self._record_step_change(principal, head, step_id, Event(steps.UPDATED, _body(step_id, new)))

    async def move_step(
        self, principal: Principal, session_id: str, step_id: str, *, before: str | None
    ) -> tuple[Step, AcceptedInputs]:
        head = await self._lock_queue(principal, session_id)
        await self._pending_step(principal, session_id, step_id)
        pending = await self._pending_positions(session_id)
        position = pending.pop(steps.event_id_of(step_id))
        order = (
            [*pending.values(), position]
            if before is None
            else _insert_before(pending, [position], steps.event_id_of(before), before)
        )
        await self._reorder(session_id, order)
        return await self._record_step_change(
            principal, head, step_id, Event(steps.MOVED, {"step_id": step_id, "before": before})
        )

    async def remove_step(self, principal: Principal, session_id: str, step_id: str) -> tuple[Step, AcceptedInputs]:
        head = await self._lock_queue(principal, session_id)
        step = await self._pending_step(principal, session_id, step_id)
        reason = "Removed from the queue."
        await self._connection.execute(SQL["end_step"], session_id, step.position, StepState.CANCELLED, reason)
        limited = await self._limit_next_steps(principal, head)
        removed, accepted = await self._record_step_change(
            principal, head, step_id, ended_event(step_id, StepState.CANCELLED, reason)
        )
        return removed, replace(accepted, positions=[*limited, *accepted.positions])

    async def retry_step(
        self, principal: Principal, session_id: str, step_id: str, *, play: bool, check: Callable[[Step], None]
    ) -> tuple[Step, AcceptedInputs]:
        """Adds a copy at the front of the queue. The step itself keeps its result."""
        await self._lock_queue(principal, session_id)
        event_id = steps.event_id_of(step_id)
        step = await self._step(principal, session_id, event_id)
        check(step)
        row = await self._connection.fetchrow(SQL["step_to_retry"], session_id, event_id, step_id)
        assert row is not None
        steps.check_retry(step, None if row["retried_by"] is None else steps.step_id_of(row["retried_by"]))
        first = next(iter(await self._pending_positions(session_id)), None)
        copy = replace(step.definition, retry_of=step_id), row["overrides"]
        (added,), accepted = await self.add_steps(
            principal, session_id, [copy], before=None if first is None else steps.step_id_of(first)
        )
        if not play:
            return added, accepted
        _, played = await self.change_playback(principal, session_id, "play")
        positions = [*accepted.positions, *played.positions]
        return added, replace(accepted, positions=positions, wake=accepted.wake or played.wake)

    async def open_terminal(self, principal: Principal, session_id: str) -> tuple[Step, AcceptedInputs]:
        """Adds a step at the front of the queue, which also starts in a paused session. If the session has one that is
        pending or running, that one is returned instead.
        """
        head = await self._lock_queue(principal, session_id)
        row = await self._connection.fetchrow(SQL["open_terminal"], session_id)
        if row is not None:
            step = await self._step(principal, session_id, row["event_id"])
            return step, await self._wake(principal, head, ())
        first = next(iter(await self._pending_positions(session_id)), None)
        (added,), accepted = await self.add_steps(
            principal, session_id, [(steps.TERMINAL, {})], before=None if first is None else steps.step_id_of(first)
        )
        await self.record(principal, audit.build_terminal_entry("open", session_id, {"step_id": added.id}))
        if load_playback(head).playing:
            return added, accepted
        _, advanced = await self.change_playback(principal, session_id, "next")
        positions = [*accepted.positions, *advanced.positions]
        return added, replace(accepted, positions=positions, wake=accepted.wake or advanced.wake)

    async def submit_result(
        self, principal: Principal, session_id: str, step_id: str, result: JsonObject, *, is_error: bool
    ) -> tuple[Step, AcceptedInputs]:
        await self._lock_queue(principal, session_id)
        step = await self._step(principal, session_id, steps.event_id_of(step_id))
        if step.definition.kind is not StepKind.EXTERNAL:
            raise InvalidRequest(
                f"Step {step_id!r} is not external: Footplate runs it.", help_text="Wait for its result."
            )
        row = await self._connection.fetchrow(SQL["external_call"], session_id, step.turn_id)
        if row is not None and row["submitted"] is not None:
            key = row["object_key"]
            earlier = (await self._objects.load_body(key) if key else row["submitted"]).get("command")
            if audit.hash_json(earlier) == audit.hash_json(clean_object(result)):
                return step, AcceptedInputs(organisation=principal.organisation, session_id=session_id)
            raise Conflict(f"The result of step {step_id!r} was already submitted.", help_text="It cannot be changed.")
        if row is None or step.state is not StepState.RUNNING:
            raise Conflict(
                f"Step {step_id!r} does not wait for a result: it is {step.state}.",
                help_text="Submit the result while the step is running.",
            )
        sent = Input(
            type=events.USER_CUSTOM_TOOL_RESULT,
            body={
                "custom_tool_use_id": row["event_id"],
                "content": [events.text_block(_result_text(result))],
                "is_error": is_error,
                "command": result,
                "step_id": step_id,
            },
        )
        accepted = await append_inputs(self._connection, self._objects, principal, session_id, [sent])
        return await self._step(principal, session_id, steps.event_id_of(step_id)), accepted

    async def change_playback(
        self, principal: Principal, session_id: str, action: PlaybackAction
    ) -> tuple[Playback, AcceptedInputs]:
        head = await self._lock_queue(principal, session_id)
        old = load_playback(head)
        new = Playback() if action == "play" else Playback(playing=False, reason=PauseReason.REQUESTED)
        if old.reason is PauseReason.GROUP and action == "pause":
            raise Conflict(
                f"Session {session_id!r} waits until other sessions of its group have ended, so it cannot be paused.",
                help_text="Pause it when it has started, or end it.",
            )
        if action == "next":
            if old.playing:
                raise Conflict(f"Session {session_id!r} is playing.", help_text="Pause it before you step through it.")
            if old.next_steps >= len(await self._pending_positions(session_id)):
                raise Conflict(f"Session {session_id!r} has no further pending step.", help_text="Add a step.")
            new = Playback(playing=False, next_steps=old.next_steps + 1, reason=old.reason)
        if new == old:
            return new, await self._wake(principal, head, ())
        positions = await self._set_playback(principal, session_id, new)
        if old.reason is PauseReason.GROUP and new.playing:
            await self._connection.execute(SQL["count_started_member"], session_id)
        return new, await self._wake(principal, head, positions)

    async def _lock_queue(self, principal: Principal, session_id: str) -> Row:
        self._session_id = session_id
        head = await self._connection.fetchrow(SQL["lock_head"], session_id, principal.organisation)
        if head is None:
            raise NotFound("session", session_id)
        check_accepts(head, "steps")
        return head

    async def _step(self, principal: Principal, session_id: str, event_id: str) -> Step:
        row = await self._connection.fetchrow(
            *bind(
                "steps",
                session_id=session_id,
                organisation=principal.organisation,
                states=None,
                after=None,
                limit=None,
                event_ids=[event_id],
            )
        )
        if row is None:
            raise NotFound("step", steps.step_id_of(event_id))
        return load_step(row)

    async def _pending_step(self, principal: Principal, session_id: str, step_id: str) -> Step:
        step = await self._step(principal, session_id, steps.event_id_of(step_id))
        if step.state is not StepState.PENDING:
            raise Conflict(
                f"Step {step_id!r} cannot be changed, because it {_STATE_TEXTS[step.state]}.",
                help_text=_RETRY_HELP if step.state in {StepState.FAILED, StepState.CANCELLED} else _PENDING_HELP,
            )
        return step

    async def _pending_positions(self, session_id: str) -> dict[str, int]:
        """Returns the positions of the pending steps by event id, in the order of the queue."""
        rows = await self._connection.fetch(SQL["pending_steps"], session_id)
        return {row["event_id"]: row["position"] for row in rows}

    async def _limit_next_steps(self, principal: Principal, head: Row) -> Sequence[Position]:
        """Ensures that a paused session does not start a later step instead of the one that was removed."""
        old = load_playback(head)
        new = replace(old, next_steps=min(old.next_steps, len(await self._pending_positions(head["session_id"]))))
        return () if new == old else await self._set_playback(principal, head["session_id"], new)

    async def _set_playback(self, principal: Principal, session_id: str, playback: Playback) -> Sequence[Position]:
        reason = None if playback.reason is None else playback.reason.value
        await self._connection.execute(SQL["set_playback"], session_id, playback.playing, playback.next_steps, reason)
        return await append_events(
            self._connection, principal.organisation, principal.id, session_id, [playback_event(playback)]
        )

    async def _reorder(self, session_id: str, order: Sequence[int]) -> None:
        await self._connection.execute(SQL["reorder_steps"], session_id, list(order))

    async def _record_step_change(
        self, principal: Principal, head: Row, step_id: str, event: Event
    ) -> tuple[Step, AcceptedInputs]:
        session_id = head["session_id"]
        positions = await append_events(self._connection, principal.organisation, principal.id, session_id, [event])
        accepted = await self._wake(principal, head, positions)
        return await self._step(principal, session_id, steps.event_id_of(step_id)), accepted

    async def _wake(self, principal: Principal, head: Row, positions: Sequence[Position]) -> AcceptedInputs:
        """Sets the wake flag if the session may start a step and has one."""
        session_id = head["session_id"]
        wake = await self._connection.fetchval(SQL["wake_queue"], session_id)
        return AcceptedInputs(
            organisation=principal.organisation,
            session_id=session_id,
            positions=positions,
            wake=bool(wake) and not head["wake"],
            ends_when_idle=head["ends_when_done"],
        )


def _result_text(result: JsonObject) -> str:
    return steps.stream_text(result.get("stdout")) or str(result.get("error") or "")


def _insert_before(pending: dict[str, int], added: Sequence[int], event_id: str, step_id: str) -> list[int]:
    if event_id not in pending:
        raise Conflict(f"Step {step_id!r} is not pending.", help_text="Name a pending step, or none for the end.")
    order = list(pending.values())
    place = order.index(pending[event_id])
    return [*order[:place], *added, *order[place:]]


def _body(step_id: str, definition: StepDefinition) -> JsonObject:
    return {"step_id": step_id, "kind": definition.kind.value, "name": definition.name, **definition.dump()}


def created_event(definition: StepDefinition, before: str | None) -> Event:
    """Returns the event that adds a step."""
    _check_size(definition)
    event = Event(steps.CREATED)
    event.body.update({**_body(steps.step_id_of(event.id), definition), "before": before})
    return event


def _check_size(definition: StepDefinition) -> None:
    if (size := len(orjson.dumps(clean_object(definition.dump())))) > MAX_DEFINITION_BYTES:
        raise InvalidRequest(
            f"A step has at most {MAX_DEFINITION_BYTES} bytes, and this one has {size}.",
            help_text="Put the text into a file, and refer to it.",
        )
