"""Validates the inputs of an API request against the state of the session, and appends them to its log.

Everything happens in one transaction, which locks the session's head row (its current state). Messages are queued as
steps for the worker. If the session has work to do, its wake flag is set. The caller stores the response of the request
in the same transaction, so a retried request adds no second event.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson

from footplate.domain import audit
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.organisations.limits import LimitName, OrganisationLimits
from footplate.domain.organisations.principals import Principal
from footplate.domain.policy.approvals import (
    DECIDED_BY_TIMEOUT,
    DECIDED_BY_TURN,
    MAX_EDIT_CHARACTERS,
    ApprovalPolicy,
    InputEdit,
    InputEdited,
)
from footplate.domain.ports.api import AcceptedInputs, Input
from footplate.domain.sessions import events, steps, threads
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.turns import WhenBusy
from footplate.store.database import SQL, Connection, bind
from footplate.store.object_store import Objects
from footplate.store.resources import audit_trail as trail
from footplate.store.resources.limits import check_limit
from footplate.store.row_mapping import Row, load_position
from footplate.telemetry import traces

_CALL_RESPONSES: Final = {
    events.USER_CUSTOM_TOOL_RESULT: ("custom_tool_use_id", "custom tool call"),
    events.USER_TOOL_CONFIRMATION: ("tool_use_id", "tool call"),
}
"""For each event type: the field with the call's id, and the noun for the call in messages."""

_SENT_FIELDS: Final = {
    events.USER_CUSTOM_TOOL_RESULT: ("content", "is_error"),
    events.USER_TOOL_CONFIRMATION: ("result", "deny_message", "updated_input", "session_rule"),
}
"""The fields of a decision or a reply that its author sends. The server adds the author."""

_INTERRUPTED: Final = "The user interrupted the subagent that made this call."


@dataclass(frozen=True, slots=True)
class _AwaitedResponse:
    """The event that a call waits for."""

    type: str
    thread_id: str | None
    """The thread of the subagent that made the call."""
    is_question: bool
    waits_for_sessions: bool = False
    """Only the server submits the result, when a group of sessions has ended."""


@dataclass(slots=True)
class _InputPlan:
    """The effects of one input on the session."""

    event: Event
    source: Input
    processed: bool
    step: bool = False
    wake: bool = False
    control: bool = False

    @property
    def interrupts(self) -> bool:
        asks = self.source.type == events.USER_INTERRUPT or self.source.when_busy is WhenBusy.INTERRUPT
        return self.control and asks


async def append_inputs(
    connection: Connection,
    objects: Objects,
    principal: Principal,
    session_id: str,
    inputs: Sequence[Input],
    *,
    limits: OrganisationLimits | None = None,
) -> AcceptedInputs:
    head = await connection.fetchrow(SQL["lock_head"], session_id, principal.organisation)
    if head is None:
        raise NotFound("session", session_id)
    check_accepts(head, "events")
    pending = await _load_pending_calls(connection, head, inputs)
    await _check_threads(connection, session_id, inputs)
    decisions = await _load_decisions(connection, objects, session_id, inputs, pending)
    repeated = {
        number: found for number, item in enumerate(inputs) if (found := _find_repeated(item, decisions)) is not None
    }
    waits_for_group = await _waits_for_group(connection, head, inputs)
    waits_in_step = not waits_for_group and await _waits_in_step(connection, head, inputs)
    plans = [
        _plan_input(
            head, principal, item, number, pending, waits_for_group=waits_for_group, waits_in_step=waits_in_step
        )
        for number, item in enumerate(inputs)
        if number not in repeated
    ]
    if not plans:
        return AcceptedInputs(
            organisation=principal.organisation, session_id=session_id, positions=[*repeated.values()]
        )
    new_decisions = [plan.event for plan in plans if plan.event.type == events.USER_TOOL_CONFIRMATION]
    if new_decisions:
        editors = await _check_decisions(connection, principal, head, new_decisions)
        for decision in new_decisions:
            if editor := editors.get(str(decision.body["tool_use_id"])):
                decision.body["edited_by_name"] = editor
    if limits is not None:
        added = sum(plan.step for plan in plans)
        await check_limit(connection, limits, principal, LimitName.QUEUED_STEPS, adding=added)
    closing = _close_interrupted_calls(head, plans, pending)
    accepted = await _write_plans(connection, objects, principal, head, [*plans, *closing])
    closed = [plan.event for plan in closing if plan.event.type == events.USER_TOOL_CONFIRMATION]
    await _record_decisions(connection, principal, session_id, [*new_decisions, *closed])
    await _record_replies(connection, principal, session_id, [plan.event for plan in (*plans, *closing)])
    new = iter(accepted.positions)
    positions = [repeated.get(number) or next(new) for number in range(len(inputs))]
    return replace(accepted, positions=[*positions, *new], cancels_children=waits_for_group)


def check_accepts(head: Row, noun: str) -> None:
    """Raises `InvalidRequest` if the session is archived or has ended."""
    session_id = head["session_id"]
    if head["ended_at"] is not None:
        raise InvalidRequest(
            f"Session {session_id!r} has ended and accepts no more {noun}.",
            help_text=f"Fork it to go on from where it ended: `footplate fork {session_id}`.",
        )
    if head["archived_at"] is not None:
        raise InvalidRequest(
            f"Session {session_id!r} is archived and accepts no more {noun}.", help_text="Create a new session."
        )


async def _load_pending_calls(
    connection: Connection, head: Row, inputs: Sequence[Input]
) -> dict[str, _AwaitedResponse]:
    """Returns the pending calls by id. Includes those of a turn that still runs, because a client may respond to a call
    as soon as it is in the log.
    """
    may_close = [item.type in _CALL_RESPONSES or _interrupted_thread(item) is not None for item in inputs]
    if head["turn_id"] is None or not any(may_close):
        return {}
    rows = await connection.fetch(SQL["pending_calls"], head["session_id"], head["turn_id"])
    return {
        row["id"]: _AwaitedResponse(
            row["answer"], row["thread_id"], bool(row["is_question"]), bool(row["waits_for_sessions"])
        )
        for row in rows
    }


async def _waits_for_group(connection: Connection, head: Row, inputs: Sequence[Input]) -> bool:
    """Whether an interrupt among the inputs meets a turn that waits for groups of sessions, and for nothing else."""
    if not _interrupts_parked_turn(head, inputs):
        return False
    return bool(await connection.fetchval(SQL["waits_for_group"], head["session_id"], head["turn_id"], None))


async def _waits_in_step(connection: Connection, head: Row, inputs: Sequence[Input]) -> bool:
    """Whether an interrupt among the inputs meets a step without a model that waits for a decision or a result."""
    if not _interrupts_parked_turn(head, inputs):
        return False
    kind = await connection.fetchval(SQL["kind_of_turn"], head["session_id"], head["turn_id"])
    return kind in steps.INTERRUPTED_WHILE_WAITING


def _interrupts_parked_turn(head: Row, inputs: Sequence[Input]) -> bool:
    is_parked = head["turn_id"] is not None and head["status"] == "idle"
    whole_turn = {None, threads.primary_id(head["session_id"])}
    interrupts = [item for item in inputs if item.type == events.USER_INTERRUPT]
    return is_parked and any(_interrupted_thread(item) in whole_turn for item in interrupts)


def _interrupted_thread(item: Input) -> str | None:
    """Returns the thread of a subagent that this input interrupts. None: it interrupts the turn, or nothing."""
    thread_id = item.body.get(threads.THREAD_ID) if item.type == events.USER_INTERRUPT else None
    return thread_id if isinstance(thread_id, str) else None


async def _check_threads(connection: Connection, session_id: str, inputs: Sequence[Input]) -> None:
    """Raises `InvalidRequest` for an interrupt of a thread that the session does not have."""
    for number, item in enumerate(inputs):
        thread_id = _interrupted_thread(item)
        if thread_id in {None, threads.primary_id(session_id)}:
            continue
        if not await connection.fetchval(SQL["has_thread"], session_id, thread_id):
            raise InvalidRequest(
                f"This session has no thread with the ID {thread_id!r}.",
                field=f"events.{number}.{threads.THREAD_ID}",
                help_text="Use an ID from the session's list of threads, or omit the field to interrupt all threads.",
            )


def _close_interrupted_calls(
    head: Row, plans: Sequence[_InputPlan], pending: dict[str, _AwaitedResponse]
) -> list[_InputPlan]:
    """Closes the pending calls of interrupted threads while the turn is parked, so that it resumes without them. A
    running turn closes them itself.
    """
    interrupted = {_interrupted_thread(plan.source) for plan in plans if plan.processed} - {None}
    closing = []
    for call_id, awaited in pending.items():
        if awaited.thread_id not in interrupted or head["status"] != "idle" or awaited.waits_for_sessions:
            continue
        name, _ = _CALL_RESPONSES[awaited.type]
        body: JsonObject = {name: call_id}
        if awaited.type == events.USER_TOOL_CONFIRMATION:
            body |= {"result": "deny", "deny_message": _INTERRUPTED, "decided_by": DECIDED_BY_TURN}
        else:
            body |= {"content": [events.text_block(_INTERRUPTED)], "is_error": True, "answered_by": DECIDED_BY_TURN}
        event = threads.in_thread(Event(awaited.type, body), awaited.thread_id)
        closing.append(_InputPlan(event, Input(type=event.type, body=body), processed=True, wake=True))
    return closing


async def _load_decisions(
    connection: Connection,
    objects: Objects,
    session_id: str,
    inputs: Sequence[Input],
    pending: dict[str, _AwaitedResponse],
) -> dict[str, Position]:
    """Returns the earlier decisions on the calls that these inputs decide, and the earlier replies to questions, by
    call id.
    """
    given = [_call_id(item.type, item.body) for item in inputs]
    calls = [call_id for call_id in given if call_id is not None and call_id not in pending]
    rows = await connection.fetch(SQL["confirmations"], session_id, calls) if calls else []
    decisions = {}
    for row in rows:
        found = load_position(row)
        if row["object_key"]:
            found = replace(found, event=replace(found.event, body=await objects.load_body(row["object_key"])))
        decisions[str(_call_id(row["type"], row["body"]))] = found
    return decisions


def _call_id(event_type: str, body: JsonObject) -> str | None:
    """Returns the id of the call that an event decides or returns the result of."""
    return str(body.get(_CALL_RESPONSES[event_type][0])) if event_type in _CALL_RESPONSES else None


async def _check_decisions(
    connection: Connection, principal: Principal, head: Row, decisions: Sequence[Event]
) -> dict[str, str]:
    """Raises `Forbidden` if the principal may not make these decisions. Returns the names of other people who edited
    the inputs, by call id.
    """
    if principal.id == DECIDED_BY_TIMEOUT:
        return {}
    row = await connection.fetchrow(SQL["policy"], principal.organisation)
    if row is None:
        return {}
    policy = ApprovalPolicy.load(row["approvals"])
    author_rows = await connection.fetch(SQL["turn_authors"], head["session_id"], head["turn_id"])
    edits = _find_edits(decisions) if policy.two_people else []
    if len(edits) < len(decisions):
        policy.check_may_decide(principal, [row["principal"] for row in author_rows])
    return await _check_edits(connection, principal, head["session_id"], policy, edits) if edits else {}


async def _check_edits(
    connection: Connection, principal: Principal, session_id: str, policy: ApprovalPolicy, edits: Sequence[InputEdit]
) -> dict[str, str]:
    """Checks edited inputs: the author of an edit cannot approve it. Raises `InputEdited` for edits that no other
    person has proposed. Returns the names of the editors, by call id.
    """
    rows = await connection.fetch(SQL["edits"], session_id, [edit.event_id for edit in edits])
    proposals = {row["event_id"]: row for row in rows}
    policy.check_role(principal)
    new = []
    for edit in edits:
        proposed = proposals.get(edit.event_id)
        if (
            proposed is None
            or audit.hash_json(proposed["input"]) != audit.hash_json(edit.input)
            or proposed["id"] == principal.id
        ):
            new.append(edit)
    if new:
        raise InputEdited(session_id, new)
    return {event_id: str(row["name"]) for event_id, row in proposals.items()}


def _find_edits(decisions: Sequence[Event]) -> list[InputEdit]:
    found = []
    for decision in decisions:
        updated_input = decision.body.get("updated_input")
        if not isinstance(updated_input, dict):
            continue
        if len(json_text(updated_input)) > MAX_EDIT_CHARACTERS:
            raise InvalidRequest(
                f"updated_input: must not exceed {MAX_EDIT_CHARACTERS} characters, because another person "
                f"must approve it",
                field="updated_input",
                help_text="Deny the call and send a message that says what to do instead.",
            )
        found.append(InputEdit(str(decision.body["tool_use_id"]), clean_object(updated_input)))
    return found


async def _record_decisions(
    connection: Connection, principal: Principal, session_id: str, decisions: Sequence[Event]
) -> None:
    """Closes the pending approvals, adds the decisions to the audit trail, and stores new session rules."""
    for decision in decisions:
        use_id, result, rule = (decision.body.get(name) for name in ("tool_use_id", "result", "session_rule"))
        await connection.execute(SQL["answer_ask"], session_id, use_id, result, principal.id, None)
        entry = audit.build_approval_entry(decision)
        await trail.add_entry(connection, principal.organisation, entry, principal=principal.id, session=session_id)
        if isinstance(rule, str):
            await connection.execute(SQL["allow_for_session"], session_id, rule)


async def _record_replies(
    connection: Connection, principal: Principal, session_id: str, accepted: Sequence[Event]
) -> None:
    """Closes the questions that these events answer."""
    for event in accepted:
        if event.type == events.USER_CUSTOM_TOOL_RESULT and "answered_by" in event.body:
            use_id, reply = event.body["custom_tool_use_id"], event.body.get("answers")
            await connection.execute(SQL["answer_ask"], session_id, use_id, "answer", principal.id, reply)


def _find_repeated(item: Input, decisions: dict[str, Position]) -> Position | None:
    """Returns the earlier decision or reply if this input repeats it. Raises `Conflict` if it differs."""
    found = decisions.get(str(_call_id(item.type, item.body)))
    if found is None or found.event.type != item.type:
        return None
    if all(found.event.body.get(name) == item.body.get(name) for name in _SENT_FIELDS[item.type]):
        return found
    if item.type == events.USER_CUSTOM_TOOL_RESULT:
        author = found.event.body.get("answered_by_name") or found.event.body["answered_by"]
        raise Conflict(
            f"The question {item.body['custom_tool_use_id']!r} was already answered by {author}.",
            help_text="An answer cannot be changed. Send a message that says what to do instead.",
        )
    reason = found.event.body.get("deny_message")
    raise Conflict(
        f"The call {item.body['tool_use_id']!r} was already decided: {found.event.body['result']}"
        f"{f' ({reason})' if reason else '.'}",
        help_text="A decision cannot be changed. Send a message that says what to do instead.",
    )


def _plan_input(
    head: Row,
    principal: Principal,
    item: Input,
    number: int,
    pending: dict[str, _AwaitedResponse],
    *,
    waits_for_group: bool,
    waits_in_step: bool,
) -> _InputPlan:
    event = Event(item.type, item.body)
    busy = head["status"] != "idle" or head["wake"] or head["waits_for"] is not None
    if item.type == events.USER_MESSAGE:
        may_start = head["playing"] or head["next_steps"] > 0
        if (busy or not may_start) and item.when_busy is WhenBusy.REJECT:
            raise Conflict(
                f"Session {head['session_id']!r} is busy or paused, and the message has when_busy set to reject.",
                help_text="Wait for session.status_idle, or send the message with when_busy set to queue, steer or "
                "interrupt.",
            )
        control = busy and item.when_busy in {WhenBusy.STEER, WhenBusy.INTERRUPT}
        return _InputPlan(event, item, processed=False, step=True, wake=may_start, control=control)
    if item.type == events.USER_INTERRUPT:
        # A turn that waits for children obeys the interrupt when they are cancelled.
        acts = busy or waits_for_group or waits_in_step
        return _InputPlan(event, item, processed=not acts, control=acts, wake=waits_in_step)
    if item.type in _CALL_RESPONSES:
        name, noun = _CALL_RESPONSES[item.type]
        use_id = str(item.body.get(name))
        awaited = pending.pop(use_id, None)
        if awaited is None or awaited.type != item.type:
            raise InvalidRequest(
                f"No pending {noun} has the ID {use_id!r}.",
                field=f"events.{number}.{name}",
                help_text="Use an ID from stop_reason.event_ids in the last session.status_idle, once for each call.",
            )
        if awaited.waits_for_sessions:
            raise InvalidRequest(
                f"The call {use_id!r} waits for sessions that Footplate runs, so its result cannot be submitted.",
                field=f"events.{number}.{name}",
                help_text="Wait until they have ended, or interrupt this session to cancel them.",
            )
        if item.type == events.USER_TOOL_CONFIRMATION:
            event = Event(item.type, {**item.body, **_author_fields(principal, "decided_by")})
        elif awaited.is_question:
            event = Event(item.type, {**item.body, **_author_fields(principal, "answered_by")})
        return _InputPlan(threads.in_thread(event, awaited.thread_id), item, processed=True, wake=True)
    raise InvalidRequest(f"Events of type {item.type!r} are not supported.", field=f"events.{number}.type")


def _author_fields(principal: Principal, name: str) -> JsonObject:
    """The extra fields of a decision or a reply that say who made it."""
    named: JsonObject = {} if principal.id == DECIDED_BY_TIMEOUT else {f"{name}_name": principal.name}
    return {name: principal.id, **named}


async def _write_plans(
    connection: Connection, objects: Objects, principal: Principal, head: Row, plans: Sequence[_InputPlan]
) -> AcceptedInputs:
    session_id, organisation = head["session_id"], principal.organisation
    wake, control = any(plan.wake for plan in plans), any(plan.control for plan in plans)
    fitted = [await objects.fit_body(organisation, session_id, plan.event.body) for plan in plans]
    large = [(plan.event.id, key) for plan, (_, key) in zip(plans, fitted, strict=True) if key]
    rows = await connection.fetch(
        *bind(
            "append_input",
            session_id=session_id,
            organisation=organisation,
            event_ids=[plan.event.id for plan in plans],
            event_types=[plan.event.type for plan in plans],
            bodies=[text for text, _ in fitted],
            processed=[plan.processed for plan in plans],
            wake=wake,
            control=control,
            principal=principal.id,
            large_event_ids=[event_id for event_id, _ in large],
            object_keys=[key for _, key in large],
            when_busy=[plan.source.when_busy if plan.step else None for plan in plans],
            overrides=[json_text(plan.source.overrides) for plan in plans],
            contexts=[json_text(plan.source.context) for plan in plans],
            traceparent=traces.current_traceparent(),
        )
    )
    by_id = {row["event_id"]: row for row in rows}
    return AcceptedInputs(
        organisation=organisation,
        session_id=session_id,
        positions=[_position(plan.event, by_id[plan.event.id]) for plan in plans],
        wake=wake and not head["wake"],
        ends_when_idle=head["ends_when_done"],
        nudge=control,
        ends_wait=head["status"] == "rescheduling" and any(plan.interrupts for plan in plans),
    )


async def append_notice(connection: Connection, principal: Principal, session_id: str, event: Event) -> AcceptedInputs:
    """Appends an event that the API itself creates, such as `session.updated`. The caller holds the head's lock."""
    positions = await append_events(connection, principal.organisation, principal.id, session_id, [event])
    return AcceptedInputs(organisation=principal.organisation, session_id=session_id, positions=positions)


async def append_events(
    connection: Connection,
    organisation: str,
    principal_id: str | None,
    session_id: str,
    new_events: Sequence[Event],
    *,
    wake: bool = False,
) -> Sequence[Position]:
    """Appends events without an epoch, and sets the wake flag if asked to. The caller holds the head's lock."""
    nothing = [None] * len(new_events)
    rows = await connection.fetch(
        *bind(
            "append_input",
            session_id=session_id,
            organisation=organisation,
            event_ids=[event.id for event in new_events],
            event_types=[event.type for event in new_events],
            bodies=[json_text(event.body) for event in new_events],
            processed=[True] * len(new_events),
            wake=wake,
            control=False,
            principal=principal_id,
            large_event_ids=[],
            object_keys=[],
            when_busy=nothing,
            overrides=nothing,
            contexts=nothing,
            traceparent=None,
        )
    )
    by_id = {row["event_id"]: row for row in rows}
    return [_position(event, by_id[event.id]) for event in new_events]


def json_text(value: JsonObject) -> str:
    return orjson.dumps(value).decode()


def _position(event: Event, row: Row) -> Position:
    return Position(row["seq"], event, row["created_at"], row["processed_at"])
