"""Decides whether the next step of a session's queue runs, and loads the results of the steps that it refers to."""

from collections.abc import Sequence

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.json import JsonObject
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions import events, step_references, steps
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.steps import (
    ClaimedStep,
    OnFailure,
    PauseReason,
    Playback,
    Step,
    StepDefinition,
    StepEnd,
    StepKind,
    StepState,
)
from footplate.domain.sessions.turns import TurnStatus
from footplate.store.database import SQL, Connection
from footplate.store.log.inputs import append_events
from footplate.store.row_mapping import Row


async def load_claimed_step(
    connection: Connection, session_id: str, row: Row, *, is_running: bool = False
) -> ClaimedStep | None:
    """Loads the step that is claimed, or whose turn goes on. None: it is a message that was sent as an event."""
    if row["definition"] is None:
        return None
    definition = StepDefinition.load(row["kind"], row["name"], row["definition"])
    names = sorted(_names_of_references(definition))
    rows = await connection.fetch(SQL["step_results"], session_id, names) if names else []
    return ClaimedStep(
        id=steps.step_id_of(row["event_id"]),
        position=row["position"],
        definition=definition,
        attempt=row["attempts"] if is_running else row["attempts"] + 1,
        results={found["name"]: load_step(found) for found in rows},
    )


def _names_of_references(definition: StepDefinition) -> set[str]:
    try:
        found = {
            reference.step
            for text in definition.reference_texts
            for reference in step_references.find_references(text, where="step")
        }
    except InvalidRequest:  # the turn fails with the reason
        found = set()
    return found | step_references.names_in_condition(definition.condition or "")


def find_early_end(step: ClaimedStep) -> tuple[StepEnd, str] | None:
    """Decides whether the step ends without running, and why. None: it runs."""
    condition = step.definition.condition
    if condition is None:
        return None
    try:
        if step_references.evaluate_condition(
            condition, {name: steps.result_fields(found) for name, found in step.results.items()}
        ):
            return None
    except Permanent as error:
        return StepEnd(StepState.FAILED, pauses=step.definition.on_failure is not OnFailure.CONTINUE), error.advice
    return StepEnd(StepState.SKIPPED), f"The condition {condition!r} is false."


async def end_unstarted_step(
    connection: Connection, organisation: str, session_id: str, step: ClaimedStep, end: StepEnd, reason: str
) -> tuple[Sequence[Position], bool]:
    """Ends a step that does not run, under the head's lock. Returns whether the session may start another one."""
    await connection.execute(SQL["end_step"], session_id, step.position, end.state, reason)
    may_start = bool(await connection.fetchval(SQL["consume_next"], session_id))
    new_events = [ended_event(step.id, end.state, reason)]
    if end.pauses:
        new_events.append(await pause(connection, session_id, PauseReason.STEP_FAILED))
    positions = await append_events(connection, organisation, None, session_id, new_events)
    return positions, may_start and not end.pauses


async def end_superseded_step(
    connection: Connection, organisation: str, session_id: str, step: ClaimedStep, turn: Row
) -> Sequence[Position]:
    """Ends a step whose turn waited until a message ended it. The caller holds the head's lock."""
    new_events = [
        *unrun_results(turn),
        ended_event(step.id, StepState.CANCELLED, "A message arrived before the result or the decision."),
    ]
    if step.definition.on_failure is not OnFailure.CONTINUE:
        new_events.append(await pause(connection, session_id, PauseReason.STEP_FAILED))
    return await append_events(connection, organisation, None, session_id, new_events)


def unrun_results(turn: Row) -> list[Event]:
    """Results of the commands that a turn without a model waited to run, if the turn ends without running them. In
    other turns, the next turn adds them to the conversation.
    """
    if turn["kind"] != StepKind.SHELL:
        return []
    text = "Not run: the step ended before the command was approved. The command had no effect."
    details: JsonObject = {"status": "denied", "exit_code": None, "duration_ms": None, "error": text}
    return [
        events.tool_result(str(use_id), [events.text_block(text)], is_error=True, call_id=turn["id"], command=details)
        for use_id in (turn["result"] or {}).get("pending", [])
    ]


async def end_claimed_step(connection: Connection, claim: Claim, step: ClaimedStep, end: StepEnd) -> Sequence[Position]:
    """Applies the failure policy of a step whose turn ends, before the same transaction ends the turn. The caller holds
    the head's lock.
    """
    if end.retry_after is not None:
        await connection.execute(SQL["retry_step"], claim.session_id, step.position, end.retry_after)
    if not end.pauses:
        return ()
    event = await pause(connection, claim.session_id, PauseReason.STEP_FAILED)
    return await append_events(connection, claim.organisation, None, claim.session_id, [event])


async def pause(connection: Connection, session_id: str, reason: PauseReason) -> Event:
    """Pauses the session. Returns the event that says so, which the caller appends."""
    await connection.execute(SQL["set_playback"], session_id, False, 0, reason)
    return playback_event(Playback(playing=False, reason=reason))


def playback_event(playback: Playback) -> Event:
    reason = None if playback.reason is None else playback.reason.value
    return Event(
        steps.PLAYBACK, {"playing": playback.playing, "next_steps": playback.next_steps, "pause_reason": reason}
    )


def ended_event(step_id: str, state: StepState, error_message: str | None) -> Event:
    return Event(steps.ENDED, {"step_id": step_id, "state": state.value, "error_message": error_message})


def _waiting_for(kind: StepKind) -> str:
    return "sessions" if kind is StepKind.PARALLEL else "action"


def _load_result(row: Row) -> JsonObject | None:
    if row["error_message"] is not None:
        return {**(row["result"] or {}), "error": row["error_message"]}
    return row["result"] or None


def load_step(row: Row) -> Step:
    is_message = row["definition"] is None
    definition = steps.MESSAGE if is_message else StepDefinition.load(row["kind"], row["name"], row["definition"])
    waits = row["state"] == StepState.RUNNING and row["turn_status"] == TurnStatus.AWAITING
    return Step(
        id=steps.step_id_of(row["event_id"]),
        session_id=row["session_id"],
        position=row["position"],
        sort_key=row["sort_key"],
        state=StepState(row["state"]),
        definition=definition,
        is_message=is_message,
        attempt=row["attempts"],
        waiting_for=_waiting_for(definition.kind) if waits else "retry" if row["not_before"] is not None else None,
        turn_id=row["turn_id"],
        result=_load_result(row),
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )
