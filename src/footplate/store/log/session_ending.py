"""Ends sessions. An ended session accepts nothing more, holds nothing, and can be read and forked.

All of it happens in one transaction, under the lock of the session's head: the open turn and the pending steps are
ended, pending approvals are closed, and `session.status_terminated` says how the session ended. If the session belongs
to a group, the same transaction accounts for it there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions import events, steps
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.steps import StepEnd, StepState
from footplate.domain.sessions.turns import SessionToWake, TurnOutcome, TurnStatus
from footplate.store.database import SQL, Connection, bind
from footplate.store.log.inputs import append_events
from footplate.store.log.session_groups import AccountedEnd, record_member_end
from footplate.store.log.step_queue import ended_event, unrun_results
from footplate.store.row_mapping import Row


@dataclass(frozen=True, slots=True)
class EndedSession:
    positions: Sequence[Position] = ()
    """To be published."""
    to_wake: Sequence[SessionToWake] = ()
    """Organisation and id of other sessions that have work now. Their wake flags are set."""


async def end_session(connection: Connection, organisation: str, session_id: str, end: SessionEnd) -> EndedSession:
    """Ends the session. The caller holds the lock of its head. An ended session does not change."""
    head = await connection.fetchrow(SQL["head_to_end"], session_id)
    if head is None or head["ended_at"] is not None:
        return EndedSession()
    new_events = [*await _stop_work(connection, session_id, head, "The session ended"), events.status_terminated(end)]
    positions = await append_events(connection, organisation, end.ended_by, session_id, new_events)
    has_open_turn = head["turn_id"] is not None
    await connection.execute(
        *bind(
            "mark_ended",
            session_id=session_id,
            outcome=end.outcome,
            reason=end.reason,
            ended_by=end.ended_by,
            organisation=organisation,
            has_open_turn=has_open_turn,
        )
    )
    accounted = AccountedEnd()
    if head["group_id"] is not None:
        accounted = await record_member_end(connection, organisation, session_id, end)
    return EndedSession([*positions, *accounted.positions], accounted.to_wake)


async def end_member(connection: Connection, organisation: str, session_id: str, end: SessionEnd) -> EndedSession:
    """Ends a session if it belongs to a group, so that the group does not wait for it. The caller holds its lock."""
    head = await connection.fetchrow(SQL["head_to_end"], session_id)
    if head is None or head["group_id"] is None:
        return EndedSession()
    return await end_session(connection, organisation, session_id, end)


async def stop_archived_work(connection: Connection, principal: Principal, session_id: str) -> Sequence[Position]:
    """Ends the open turn and the pending steps of a session that is archived. The caller holds the lock of its head."""
    head = await connection.fetchrow(SQL["head_to_end"], session_id)
    assert head is not None
    new_events = await _stop_work(connection, session_id, head, "The session was archived")
    if not new_events:
        return ()
    return await append_events(connection, principal.organisation, principal.id, session_id, new_events)


async def _stop_work(connection: Connection, session_id: str, head: Row, cause: str) -> Sequence[Event]:
    """Ends the open turn and the pending steps. Returns the events to append."""
    new_events: list[Event] = []
    reason = f"{cause} before it ran."
    cancelled = await connection.fetch(SQL["cancel_pending_steps"], session_id, reason)
    if head["turn_id"] is not None:
        new_events += await _end_open_turn(connection, session_id, head["epoch"], head["turn_id"], f"{cause}.")
    for row in cancelled:
        new_events.append(ended_event(steps.step_id_of(row["event_id"]), StepState.CANCELLED, reason))
    return new_events


async def request_end(connection: Connection, session_id: str, end: SessionEnd) -> None:
    """Records how the session ends with its running turn. The caller also interrupts the turn."""
    await connection.execute(SQL["request_end"], session_id, _dump(end))


async def end_after_turn(
    connection: Connection, claim: Claim, outcome: TurnOutcome, step_end: StepEnd, request: JsonObject | None
) -> EndedSession | None:
    """Ends the session in the commit that ends its turn, if a client asked for that (`request`), if the step says so,
    or if the session ends when it is done. None: the session goes on.
    """
    end = load_end_request(request)
    if end is None and (outcome.status is TurnStatus.AWAITING or step_end.retry_after is not None):
        return None
    ends_session = claim.step is not None and claim.step.definition.ends_session
    if end is None and ends_session and step_end.state is not StepState.CANCELLED:
        end = _end_by_step(step_end.state, outcome.error_message)
    elif end is None and claim.ends_when_done:
        end = await _find_own_end(connection, claim.session_id)
    return None if end is None else await end_session(connection, claim.organisation, claim.session_id, end)


async def end_unstarted_work(
    connection: Connection, organisation: str, session_id: str, positions: Sequence[Position]
) -> EndedSession:
    """Ends a session with `ends_when_done` whose last steps did not run. `positions` has the ends of these steps, and
    the pause if one of them failed.
    """
    failures = [
        SessionEnd(outcome=EndOutcome.FAILED, reason=str(ended.event.body["error_message"]))
        for ended, following in pairwise(positions)
        if following.event.type == steps.PLAYBACK
    ]
    end = failures[-1] if failures else await _find_own_end(connection, session_id)
    return EndedSession() if end is None else await end_session(connection, organisation, session_id, end)


async def _find_own_end(connection: Connection, session_id: str) -> SessionEnd | None:
    """Decides how a session with `ends_when_done` ends now. None: it has more work, or waits for a person."""
    row = await connection.fetchrow(SQL["finished_work"], session_id)
    return None if row is None else _end_by_step(StepState(row["state"]), row["error"])


def _end_by_step(state: StepState, error: str | None) -> SessionEnd:
    if state is StepState.CANCELLED:
        return SessionEnd(outcome=EndOutcome.CANCELLED, reason=error or "The last turn was interrupted.")
    if state is StepState.FAILED:
        return SessionEnd(outcome=EndOutcome.FAILED, reason=error or "The last step failed.")
    return SessionEnd(outcome=EndOutcome.COMPLETED)


def load_end_request(stored: JsonObject | None) -> SessionEnd | None:
    if stored is None:
        return None
    reason, ended_by = stored.get("reason"), stored.get("ended_by")
    return SessionEnd(
        outcome=EndOutcome(str(stored["outcome"])),
        reason=reason if isinstance(reason, str) else None,
        ended_by=ended_by if isinstance(ended_by, str) else None,
    )


async def _end_open_turn(
    connection: Connection, session_id: str, epoch: int, turn_id: str, reason: str
) -> Sequence[Event]:
    """Ends a turn that waits for a result, a decision or its next attempt. Returns the events to append."""
    turn = await connection.fetchrow(SQL["turn_of_head"], session_id, turn_id)
    assert turn is not None
    result = {**(turn["result"] or {}), "superseded": True}
    await connection.fetchval(
        *bind(
            "end_turn",
            session_id=session_id,
            epoch=epoch,
            turn_id=turn_id,
            status=TurnStatus.INTERRUPTED,
            result=result,
            is_over=True,
            is_running=False,
            step_state=StepState.CANCELLED,
            obeys_interrupt=False,
            problem=None,
        )
    )
    if turn["definition"] is None:
        return ()
    return [
        *unrun_results(turn),
        ended_event(steps.step_id_of(turn["event_id"]), StepState.CANCELLED, reason),
    ]


def _dump(end: SessionEnd) -> JsonObject:
    return {"outcome": end.outcome.value, "reason": end.reason, "ended_by": end.ended_by}
