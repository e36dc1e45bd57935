"""The api's side of the log: an input is validated against the session's state and appended, under the head's lock.

One transaction: events, their steps and the wake flag. A retried request is one event, because the caller's unit
remembers its answer in the same transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from footplate.domain import events
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.events import Event, Position
from footplate.domain.json import JsonObject
from footplate.domain.principals import Principal
from footplate.domain.services import Accepted, Input
from footplate.domain.turns import WhenBusy
from footplate.store.database import SQL, Connection
from footplate.store.objects import Objects
from footplate.store.records import Row
from footplate.telemetry import traces


@dataclass(slots=True)
class _Plan:
    """What one input does to the session."""

    event: Event
    source: Input
    processed: bool
    step: bool = False
    wake: bool = False
    control: bool = False


async def append_inputs(
    connection: Connection, objects: Objects, principal: Principal, session_id: str, inputs: Sequence[Input]
) -> Accepted:
    head = await connection.fetchrow(SQL["lock_head"], session_id, principal.organisation)
    if head is None:
        raise NotFound("session", session_id)
    if head["archived_at"] is not None:
        raise InvalidRequest(
            f"Session {session_id!r} is archived and takes no more events.", help_text="Create a new session."
        )
    pending = await _pending(connection, head, inputs)
    plans = [_plan(head, item, number, pending) for number, item in enumerate(inputs)]
    return await _write(connection, objects, principal, head, plans)


async def _pending(connection: Connection, head: Row, inputs: Sequence[Input]) -> list[str]:
    """Custom tool calls without a result, also of a turn that still runs: who sees a call in the log may answer it."""
    if head["turn_id"] is None or all(item.type != events.USER_CUSTOM_TOOL_RESULT for item in inputs):
        return []
    rows = await connection.fetch(SQL["pending_custom"], head["session_id"], head["turn_id"])
    return [row["id"] for row in rows]


def _plan(head: Row, item: Input, number: int, pending: list[str]) -> _Plan:
    event = Event(item.type, item.body)
    busy = head["status"] != "idle" or head["wake"]
    if item.type == events.USER_MESSAGE:
        if busy and item.when_busy is WhenBusy.REJECT:
            raise Conflict(
                f"Session {head['session_id']!r} is busy, and the message asked to be rejected then.",
                help_text="Wait for session.status_idle, or send it with when_busy queue, steer or interrupt.",
            )
        control = busy and item.when_busy in {WhenBusy.STEER, WhenBusy.INTERRUPT}
        return _Plan(event, item, processed=False, step=True, wake=True, control=control)
    if item.type == events.USER_INTERRUPT:
        return _Plan(event, item, processed=not busy, control=busy)
    if item.type == events.USER_CUSTOM_TOOL_RESULT:
        use_id = item.body.get("custom_tool_use_id")
        if use_id not in pending:
            raise InvalidRequest(
                f"No custom tool call {use_id!r} waits for a result.",
                field=f"events.{number}.custom_tool_use_id",
                help_text="Use the id of an agent.custom_tool_use event of the last turn, and answer it once.",
            )
        pending.remove(str(use_id))
        return _Plan(event, item, processed=True, wake=True)
    raise InvalidRequest(f"Events of type {item.type!r} are not supported.", field=f"events.{number}.type")


async def _write(
    connection: Connection, objects: Objects, principal: Principal, head: Row, plans: Sequence[_Plan]
) -> Accepted:
    session_id, organisation = head["session_id"], principal.organisation
    wake, control = any(plan.wake for plan in plans), any(plan.control for plan in plans)
    fitted = [await objects.fit(organisation, session_id, plan.event.body) for plan in plans]
    large = [(plan.event.id, key) for plan, (_, key) in zip(plans, fitted, strict=True) if key]
    rows = await connection.fetch(
        SQL["append_input"],
        session_id,
        organisation,
        [plan.event.id for plan in plans],
        [plan.event.type for plan in plans],
        [text for text, _ in fitted],
        [plan.processed for plan in plans],
        wake,
        control,
        principal.id,
        [event_id for event_id, _ in large],
        [key for _, key in large],
        [plan.source.when_busy if plan.step else None for plan in plans],
        [_text(plan.source.overrides) for plan in plans],
        [_text(plan.source.context) for plan in plans],
        traces.parent(),
    )
    by_id = {row["event_id"]: row for row in rows}
    return Accepted(
        organisation=organisation,
        session_id=session_id,
        positions=[_position(plan.event, by_id[plan.event.id]) for plan in plans],
        wake=wake and not head["wake"],
        nudge=control,
    )


async def append_notice(connection: Connection, principal: Principal, session_id: str, event: Event) -> Accepted:
    """An event that the api itself puts into the log, such as `session.updated`. The caller holds the head's lock."""
    rows = await connection.fetch(
        SQL["append_input"],
        session_id,
        principal.organisation,
        [event.id],
        [event.type],
        [_text(event.body)],
        [True],
        False,
        False,
        principal.id,
        [],
        [],
        [None],
        [None],
        [None],
        None,
    )
    return Accepted(organisation=principal.organisation, session_id=session_id, positions=[_position(event, rows[0])])


def _text(value: JsonObject) -> str:
    return orjson.dumps(value).decode()


def _position(event: Event, row: Row) -> Position:
    return Position(row["seq"], event, row["created_at"], row["processed_at"])
