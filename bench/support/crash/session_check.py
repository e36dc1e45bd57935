"""Reads a session from the database and the disk, and checks it against what must be true."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import asyncpg
import orjson
import stamina

from bench.support.cluster import Cluster
from bench.support.crash import interrupted_turn
from footplate.domain.sessions import events

Row: TypeAlias = asyncpg.Record | Mapping[str, Any]

_UNKNOWN_OUTCOME: Final = "outcome of this call is unknown"


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    """The id of its `agent.tool_use` event."""
    name: str
    results: int
    unknown: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class SessionAccount:
    session_id: str
    head: int
    turns: int
    attempts: int
    calls: Sequence[Call]
    faults: Sequence[str]

    @property
    def unknown(self) -> set[str]:
        return {call.id for call in self.calls if call.unknown}


# PostgreSQL may be restarted during the query, which is no fault.
@stamina.retry(
    on=(asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError, asyncpg.InterfaceError, OSError), timeout=30
)
async def _read_rows(
    cluster: Cluster, session_id: str
) -> tuple[asyncpg.Record | None, list[asyncpg.Record], list[asyncpg.Record], list[asyncpg.Record]]:
    """Returns the session's head, log, turns and conversation."""
    connection = await asyncpg.connect(cluster.settings.database_url, timeout=30)
    try:
        head = await connection.fetchrow("select * from session_heads where session_id = $1", session_id)
        log = await connection.fetch("select * from events where session_id = $1 order by seq", session_id)
        run = await connection.fetch("select status, attempt from turns where session_id = $1 order by id", session_id)
        entries = await connection.fetch("select idx from entries where session_id = $1 order by idx", session_id)
    finally:
        await connection.close()
    return head, log, run, entries


async def check_session(
    cluster: Cluster, session_id: str, seen: Sequence[int], *, turns: int = 1, calls: int = interrupted_turn.CALLS
) -> SessionAccount:
    """Checks the session. `seen`: the positions that a watching client received. `turns`: one for each acknowledged
    message.
    """
    head, log, run, entries = await _read_rows(cluster, session_id)
    assert head is not None
    made = _read_calls(log)
    faults = [
        *_log_faults(head, log, seen),
        *_turn_faults(head, run, turns),
        *_call_faults(made, calls),
        *_line_faults(made, Counter(interrupted_turn.read_lines(cluster, session_id))),
    ]
    if [row["idx"] for row in entries] != list(range(head["entries"])):
        faults.append("the conversation has a gap")
    attempts = sum(row["attempt"] for row in run)
    return SessionAccount(
        session_id, head["seq"], len(run), attempts, made, [f"{session_id}: {fault}" for fault in faults]
    )


def _read_calls(log: Sequence[Row]) -> list[Call]:
    results: dict[str, list[dict[str, Any]]] = {}
    for row in log:
        if row["type"] == events.AGENT_TOOL_RESULT:
            body = orjson.loads(row["body"])
            results.setdefault(body["tool_use_id"], []).append(body)
    calls = []
    for row in log:
        if row["type"] == events.AGENT_TOOL_USE:
            found = results.pop(row["event_id"], [])
            calls.append(
                Call(
                    id=row["event_id"],
                    name=interrupted_turn.written_line(orjson.loads(row["body"])["input"]["command"]),
                    results=len(found),
                    unknown=any(_UNKNOWN_OUTCOME in str(body["content"]) for body in found),
                    failed=any(body["is_error"] for body in found),
                )
            )
    # A result without a call is as wrong as a call with two results.
    return [*calls, *(Call(use, "?", -1, unknown=False, failed=True) for use in results)]


def _log_faults(head: Row, log: Sequence[Row], seen: Sequence[int]) -> list[str]:
    faults = []
    whole = list(range(1, head["seq"] + 1))
    if [row["seq"] for row in log] != whole:
        faults.append(f"the log is not gap-free: {[row['seq'] for row in log]} of {head['seq']}")
    again = Counter(row["event_id"] for row in log if row["ref_seq"] is None)
    if twice := [event_id for event_id, count in again.items() if count > 1]:
        faults.append(f"events are in the log twice: {twice}")
    if list(seen) != whole:
        lost, extra = sorted(set(whole) - set(seen)), [seq for seq, n in Counter(seen).items() if n > 1]
        faults.append(f"the stream lost {lost}, repeated {extra}, or changed the order")
    return faults


def _turn_faults(head: Row, run: Sequence[Row], turns: int) -> list[str]:
    faults = []
    if [row["status"] for row in run] != ["completed"] * turns:
        faults.append(f"its turns are {[row['status'] for row in run]}, not {turns} times completed")
    if (head["status"], head["holder"]) != ("idle", None):
        faults.append(f"it is {head['status']}, held by {head['holder']}")
    return faults


def _call_faults(calls: Sequence[Call], expected: int) -> list[str]:
    faults = [f"call {call.name} has {call.results} results" for call in calls if call.results != 1]
    faults += [f"call {call.name} failed" for call in calls if call.failed and not call.unknown]
    if len({call.name for call in calls}) != expected or len(calls) != expected:
        faults.append(f"its calls are {[call.name for call in calls]}")
    return faults


def _line_faults(calls: Sequence[Call], lines: Counter[str]) -> list[str]:
    faults = [f"call {name} ran {count} times" for name, count in lines.items() if count > 1]
    faults += [
        f"call {call.name} has a result and wrote no line"
        for call in calls
        if not call.unknown and lines[call.name] == 0
    ]
    if unlogged := set(lines) - {call.name for call in calls}:
        faults.append(f"lines of calls that are not in the log: {sorted(unlogged)}")
    return faults
