"""Accounts for the end of a session that belongs to a group: the children of a session, or a batch.

The transaction that ends a member also counts it, starts the next one, and, with the last one, adds the result of the
group to the log of the parent. So no end is counted twice or lost, whichever process dies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from footplate.domain.json import JsonObject, as_object
from footplate.domain.sessions import batches, groups
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.groups import GroupResult, MemberResult, WaitFor
from footplate.domain.sessions.steps import Playback
from footplate.domain.sessions.turns import SessionToWake
from footplate.store.database import SQL, Connection
from footplate.store.log.inputs import append_events
from footplate.store.log.step_queue import playback_event
from footplate.store.row_mapping import Row


@dataclass(frozen=True, slots=True)
class AccountedEnd:
    to_wake: Sequence[SessionToWake] = ()
    """Organisation and id of the sessions that have work because a member of their group has ended."""
    positions: Sequence[Position] = ()
    """To be published: the events of a batch."""


async def record_member_end(
    connection: Connection, organisation: str, session_id: str, end: SessionEnd
) -> AccountedEnd:
    """Records the end of a member, whose session has ended in this transaction.

    The caller holds the lock of the member's head. This locks the group's row, then the head of the next member if
    another transaction has not, or the head of the parent.
    """
    group = await connection.fetchrow(SQL["account_member"], session_id, end.outcome)
    if group is None:
        return AccountedEnd()
    to_wake: list[SessionToWake] = []
    ended = group["completed"] + group["failed"] + group["cancelled"]
    is_first_success = _wait_for(group) is WaitFor.FIRST_SUCCESS and end.outcome is EndOutcome.COMPLETED
    if group["ended_at"] is None and (ended == group["total"] or is_first_success):
        await connection.execute(SQL["end_group"], group["id"])
        if group["waited_for_by"] is not None:
            to_wake += await _submit_result(connection, group)
    elif group["cancelled_at"] is None and group["ended_at"] is None and _has_waiting_member(group):
        to_wake += await start_next_member(connection, organisation, group["id"])
    positions: Sequence[Position] = ()
    if group["kind"] == "batch":
        new_events = [Event(batches.JOB_ENDED, _job_end(group, end))]
        if ended == group["total"]:
            new_events.append(Event(batches.ENDED, {"batch_id": group["id"], "counts": _count_ends(group)}))
        positions = await append_events(connection, organisation, None, session_id, new_events)
    return AccountedEnd(to_wake, positions)


def _has_waiting_member(group: Row) -> bool:
    """Returns whether the member that has ended makes room for one that waits."""
    return bool(group["was_started"] and group["started"] < group["total"])


def _job_end(group: Row, end: SessionEnd) -> JsonObject:
    return {
        "batch_id": group["id"],
        "custom_id": group["group_name"],
        "index": group["group_index"],
        "outcome": end.outcome.value,
        "error_message": end.reason if end.outcome is not EndOutcome.COMPLETED else None,
        "total": group["total"],
        "counts": _count_ends(group),
    }


def _count_ends(group: Row) -> JsonObject:
    return {name: group[name] for name in ("completed", "failed", "cancelled")}


async def start_next_member(connection: Connection, organisation: str, group_id: str) -> Sequence[SessionToWake]:
    """Starts the next member that waits, if there is one. The caller holds the lock of the group."""
    row = await connection.fetchrow(SQL["start_next_member"], group_id)
    if row is None:
        return ()
    await append_events(connection, organisation, None, row["session_id"], [playback_event(Playback())])
    return [SessionToWake(organisation, row["session_id"], row["priority"])]


async def load_result(connection: Connection, group: Row) -> GroupResult:
    rows = await connection.fetch(SQL["group_members"], group["id"], groups.text_limit(group["total"]) + 1)
    found = {row["group_index"]: _load_member(row, group["total"]) for row in rows}
    members = [found.get(index) or _deleted_member(index) for index in range(group["total"])]
    return GroupResult(
        group_id=group["id"],
        wait_for=_wait_for(group),
        picks_one=as_object(group["definition"]).get("picks_one") is True,
        members=tuple(members),
        waited_for_by=group["waited_for_by"],
    )


async def _submit_result(connection: Connection, group: Row) -> Sequence[SessionToWake]:
    """Adds the result of the group to the log of the parent, as the result of the call that waits for it."""
    parent_id, organisation = group["parent_session_id"], group["organisation"]
    result = await load_result(connection, group)
    head = await connection.fetchrow(SQL["lock_head"], parent_id, organisation)
    if head is None or head["turn_id"] != group["parent_turn_id"]:
        return ()  # the turn of the parent has ended without the result
    event = groups.result_event(group["waited_for_by"], result)
    await append_events(connection, organisation, None, parent_id, [event], wake=True)
    return [SessionToWake(organisation, parent_id)]


def _wait_for(group: Row) -> WaitFor:
    return WaitFor(str(as_object(group["definition"]).get("wait_for") or WaitFor.ALL))


def _deleted_member(index: int) -> MemberResult:
    return MemberResult(index=index, session_id="", outcome=EndOutcome.CANCELLED, error="The session was deleted.")


def _load_member(row: Row, total: int) -> MemberResult:
    limit = groups.text_limit(total)
    outcome = None if row["end_outcome"] is None else EndOutcome(row["end_outcome"])
    error = None if outcome is EndOutcome.COMPLETED else row["end_reason"] or row["error"]
    return MemberResult(
        index=row["group_index"],
        session_id=row["id"],
        name=row["group_name"],
        outcome=outcome,
        text=groups.shorten(row["text"] or "", limit),
        error=None if error is None else groups.shorten(error, limit),
    )
