"""Writes to the session log for the worker that has claimed a turn: appends events and ends the turn.

Without fencing, a worker that was paused, partitioned or slow could keep writing after another worker took over its
turn. Every claim therefore increments an epoch in the session's head row, under a row lock. Each write checks the epoch
in the same SQL statement. A write with an old epoch changes nothing and raises `Fenced`.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from footplate.domain import audit, ids
from footplate.domain.audit import AuditEntry
from footplate.domain.errors import Fenced, Unavailable
from footplate.domain.files.session_outputs import OutputChanges
from footplate.domain.files.snapshots import TreeSnapshot
from footplate.domain.json import JsonObject
from footplate.domain.policy.approvals import DECIDED_BY_TURN
from footplate.domain.ports.engine import Claim, FinishedTurn
from footplate.domain.ports.harness import Entry, FullOutput, SteerMessage
from footplate.domain.projects.project import BaseCommit
from footplate.domain.sessions import events, threads
from footplate.domain.sessions.events import Event, Position, Usage
from footplate.domain.sessions.inbox import find_problem
from footplate.domain.sessions.shell_state import ShellState
from footplate.domain.sessions.steps import INTERRUPTED_WHILE_WAITING, MESSAGE, StepEnd, decide_end
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.store.archive.format import ArchiveLine
from footplate.store.archive.reader import ArchiveReader
from footplate.store.database import SQL, Connection, Database, bind, call_with_retries
from footplate.store.log.append import AppendBatch, append_batch, positions_of_appended
from footplate.store.log.fork_history import ForkHistory
from footplate.store.log.session_ending import EndedSession, end_after_turn
from footplate.store.log.step_queue import end_claimed_step, ended_event
from footplate.store.log.turn_claims import content_blocks, find_unresolved_calls
from footplate.store.object_store import Objects
from footplate.store.resources import audit_trail as trail
from footplate.store.resources.limits import LimitStore
from footplate.store.resources.session_outputs import apply_output_changes
from footplate.store.row_mapping import Row

TURN_STATEMENTS: Final = ("claim_step", "begin_turn", "files_at", "rules", "entries", "append_turn", "finish_turn")
"""The statements that a turn without tool calls runs."""
_NO_USAGE = Usage()
_APPEND_SECONDS: Final = 30.0
"""How long an append is repeated while the database or the object store does not respond."""


class _CommitFunction(Protocol):
    async def __call__(self, connection: Connection) -> Sequence[Position]: ...


class Turns:
    def __init__(self, database: Database, objects: Objects, limits: LimitStore | None = None) -> None:
        """`limits` apply to the outputs of turns."""
        self._database = database
        self._objects = objects
        self._limits = limits or LimitStore(database)
        self._history = ForkHistory(database, ArchiveReader(database, objects))

    async def append(
        self,
        claim: Claim,
        new_events: Sequence[Event],
        *,
        entries: Sequence[Entry] = (),
        usage: Usage | None = None,
        refs: Sequence[int] = (),
        files: Sequence[TreeSnapshot] = (),
        outputs: OutputChanges | None = None,
        shell: ShellState | None = None,
    ) -> Sequence[Position]:
        """Appends to the turn, with retries. A retry after a lost acknowledgement finds its events by their ids."""
        batch = AppendBatch(new_events, refs, entries, usage or Usage(), files, shell)
        limits = None if outputs is None else await self._limits.load(claim.organisation)

        async def append(connection: Connection) -> Sequence[Position]:
            positions = await append_batch(connection, self._objects, claim, batch)
            if outputs is not None and limits is not None:
                await apply_output_changes(connection, limits, claim, outputs, ends_turn=False)
            return positions

        if not new_events:
            return await self._append_entries(claim, append)

        async def commit(connection: Connection) -> Sequence[Position]:
            if outputs is None:
                return await append(connection)
            async with connection.transaction():
                return await append(connection)

        return await self._commit_with_retries(commit, claim, () if refs else new_events)

    async def _append_entries(self, claim: Claim, append: _CommitFunction) -> Sequence[Position]:
        """Appends entries without events. Entries have no ids, but only this turn adds entries: if their count has
        changed, an earlier attempt succeeded.
        """
        before: int | None = None

        async def commit(connection: Connection) -> Sequence[Position]:
            nonlocal before
            async with connection.transaction():
                count = await connection.fetchval(
                    SQL["lock_entries"], claim.session_id, claim.organisation, claim.epoch
                )
                before = count if before is None else before
                if count is not None and count != before:
                    return ()
                return await append(connection)

        return await self._commit_with_retries(commit, claim, ())

    async def decide_base(self, claim: Claim, project_id: str, base: BaseCommit) -> BaseCommit:
        """Records and returns the base that the session's tree of a project starts from. An earlier decision wins."""
        row = await self._database.fetchrow("decide_base", claim.session_id, claim.epoch, project_id, base.record)
        if row is None:
            raise Fenced(f"Another worker holds session {claim.session_id}.")
        return BaseCommit.load(row["base"]) or base

    async def finish(
        self,
        claim: Claim,
        outcome: TurnOutcome,
        files: Sequence[TreeSnapshot] = (),
        outputs: OutputChanges | None = None,
    ) -> FinishedTurn:
        """Ends the turn, its step, and the session if it ends with them, in one commit."""
        step = claim.step
        end = decide_end(step.definition if step else MESSAGE, step.attempt if step else 1, outcome)
        error = _build_error_event(outcome)
        error_entry = None if error is None else audit.build_error_entry(error, outcome.status, claim.attempt)
        last_events = [] if error is None else [error]
        idle = events.status_idle(outcome.stop_reason)
        if step is not None and outcome.status is not TurnStatus.AWAITING:
            last_events.append(ended_event(step.id, end.state, outcome.error_message))
        limits = None if outputs is None else await self._limits.load(claim.organisation)
        more = True  # also after a lost acknowledgement: an unnecessary check finds no work
        ended: EndedSession | None = None
        problem = None if end.retry_after is not None else find_problem(outcome)
        is_simple = outcome.status is not TurnStatus.AWAITING and step is None and not claim.ends_when_done
        is_simple = is_simple and problem is None

        async def commit(connection: Connection) -> Sequence[Position]:
            nonlocal more, ended
            if is_simple and not files and outputs is None and error_entry is None:
                done = await self._finish_in_one_statement(connection, claim, outcome, end, [*last_events, idle])
                if done is not None:
                    positions, more = done
                    return positions
            async with connection.transaction():
                late_interrupts, must_stop, end_request = await self._claim_late_interrupts(connection, claim)
                positions = [*late_interrupts]
                remaining = await find_unresolved_calls(connection, claim.session_id, claim.first_seq, outcome.pending)
                obeys = must_stop and await _obeys_interrupts(connection, claim, remaining)
                remaining = [] if obeys else remaining
                final_outcome = replace(outcome, pending=tuple(remaining))
                continues = outcome.status is TurnStatus.AWAITING and not remaining
                new: list[Event] = []
                if not continues:
                    new = [*last_events, replace(idle, body={"stop_reason": final_outcome.stop_reason})]
                if new or files:
                    positions += await append_batch(connection, self._objects, claim, AppendBatch(new, files=files))
                if step is not None and outcome.status is not TurnStatus.AWAITING:
                    positions += await end_claimed_step(connection, claim, step, end)
                if outputs is not None and limits is not None:
                    await apply_output_changes(connection, limits, claim, outputs, ends_turn=True)
                more = _ensure_open(
                    claim,
                    await connection.fetchval(
                        *bind(
                            "end_turn",
                            session_id=claim.session_id,
                            epoch=claim.epoch,
                            turn_id=claim.turn_id,
                            status=outcome.status,
                            result=_result_json(final_outcome),
                            is_over=outcome.status is not TurnStatus.AWAITING,
                            is_running=continues,
                            step_state=end.state,
                            obeys_interrupt=obeys,
                            problem=problem,
                        )
                    ),
                )
                await _record_error(connection, claim, error_entry)
                ended = await end_after_turn(connection, claim, outcome, end, end_request)
                if ended is not None:
                    more = False
                    positions += ended.positions
                return positions

        positions = await self._commit_with_retries(commit, claim, [*last_events, idle])
        to_wake = ended.to_wake if ended else ()
        return FinishedTurn(positions, more, end.retry_after, ended is not None, to_wake)

    async def _finish_in_one_statement(
        self, connection: Connection, claim: Claim, outcome: TurnOutcome, end: StepEnd, last_events: Sequence[Event]
    ) -> tuple[Sequence[Position], bool] | None:
        """Ends the turn in one statement. Returns None if an interrupt must be consumed first or the claim is stale."""
        fitted = [
            await self._objects.fit_body(claim.organisation, claim.session_id, event.body) for event in last_events
        ]
        row = await connection.fetchrow(
            *bind(
                "finish_turn",
                session_id=claim.session_id,
                organisation=claim.organisation,
                epoch=claim.epoch,
                turn_id=claim.turn_id,
                status=outcome.status,
                result=_result_json(outcome),
                event_ids=[event.id for event in last_events],
                event_types=[event.type for event in last_events],
                event_bodies=[text for text, _ in fitted],
                event_object_keys=[key for _, key in fitted],
                controls_seq=claim.controls_seq,
                step_state=end.state,
            )
        )
        return None if row is None else (positions_of_appended(claim, last_events, row), bool(row["more"]))

    async def reschedule(self, claim: Claim, error_type: str, message: str) -> Sequence[Position]:
        """Records a temporary failure. The turn waits for its next attempt."""
        new = [events.session_error(error_type, message, "retrying"), events.status_rescheduled()]
        error_entry = audit.build_error_entry(new[0], audit.RESCHEDULING, claim.attempt)

        async def commit(connection: Connection) -> Sequence[Position]:
            async with connection.transaction():
                positions = await append_batch(connection, self._objects, claim, AppendBatch(new))
                await _record_error(connection, claim, error_entry)
                await connection.execute(SQL["fail_once"], claim.session_id, claim.turn_id)
                arguments = claim.session_id, claim.epoch, claim.turn_id
                _ensure_open(claim, await connection.fetchval(SQL["park_head"], *arguments))
                return positions

        return await self._commit_with_retries(commit, claim, new)

    async def hand_over(self, claim: Claim) -> None:
        """Releases the turn to another worker. All of its processes here have ended. A stale claim changes nothing."""
        await self._database.fetch("hand_over", claim.session_id, claim.epoch, claim.turn_id)

    async def turn_events(self, claim: Claim) -> Sequence[Event]:
        rows = await self._database.fetch("turn_positions", claim.session_id, claim.first_seq)
        return [
            Event(row["type"], await self._load_body(row["body"], row["object_key"]), row["event_id"]) for row in rows
        ]

    async def superseded_events(self, claim: Claim) -> Sequence[Event]:
        rows = await self._database.fetch("left_answers", claim.session_id, claim.first_seq)
        return [
            Event(row["type"], await self._load_body(row["body"], row["object_key"]), row["event_id"]) for row in rows
        ]

    async def last_completed(self, claim: Claim) -> datetime | None:
        row = await self._database.fetchrow("last_completed", claim.session_id)
        found: datetime | None = row["started_at"] if row is not None else None
        return found

    async def entries(self, claim: Claim, after: int) -> list[Entry]:
        """Returns the conversation's entries from index `after` on. A session is never archived during its turn."""
        rows: Sequence[Row | ArchiveLine] = await self._database.fetch("entries", claim.session_id, after, None)
        if len(rows) < claim.entries - after or (rows and rows[0]["idx"] != after):
            rows = await self._history.read_entries(claim.session_id, after)
        return [Entry(row["kind"], await self._load_body(row["body"], row["object_key"])) for row in rows]

    async def store_output(self, claim: Claim, output: FullOutput, *, name: str | None = None) -> str:
        """Stores a command's output as an object and returns its key. Not fenced: an unused object is harmless, and is
        deleted with its session.
        """
        key = f"{claim.organisation}/{claim.session_id}/{name or ids.new_id('output') + '.txt'}"
        await self._objects.write_object(key, _read_chunks(output))
        return key

    async def load_output(self, key: str, max_bytes: int) -> bytes:
        data = bytearray()
        async for chunk in self._objects.read_chunks(key):
            data += chunk
            if len(data) >= max_bytes:
                break
        return bytes(data[:max_bytes])

    async def claim_steering(self, claim: Claim) -> tuple[Sequence[SteerMessage], Sequence[Position]]:
        """Adds queued steering messages to the turn. Returns those of earlier attempts again, because such an attempt
        may have died before it used them.
        """
        positions: Sequence[Position] = ()
        async with self._database.transaction() as connection:
            rows = await connection.fetch(SQL["steering"], claim.session_id)
            if rows:
                steering_events = [Event(events.USER_MESSAGE, row["body"], row["event_id"]) for row in rows]
                steering_positions = [row["position"] for row in rows]
                positions = await append_batch(
                    connection, self._objects, claim, AppendBatch(steering_events, refs=steering_positions)
                )
                await connection.execute(SQL["steered"], claim.session_id, steering_positions, claim.turn_id)
            if claim.attempt > 1:
                rows = await connection.fetch(SQL["steered_into"], claim.session_id, claim.turn_id)
        messages = [
            SteerMessage(row["event_id"], content_blocks(await self._load_body(row["body"], row["object_key"])))
            for row in rows
        ]
        return messages, positions

    async def find_decision(self, claim: Claim, event_id: str) -> Event | None:
        return await self._load_decision(None, claim, event_id)

    async def close_approval(self, claim: Claim, event_id: str, reason: str) -> tuple[Event, Sequence[Position]]:
        """Denies a pending call, unless a decision exists. Returns the decision that counts. Runs under the head's
        lock, like a person's decision, so the second of two concurrent decisions finds the first.
        """
        body: JsonObject = {
            "tool_use_id": event_id,
            "result": "deny",
            "deny_message": reason,
            "decided_by": DECIDED_BY_TURN,
        }
        denial = decision = threads.in_thread(
            Event(events.USER_TOOL_CONFIRMATION, body), await self._find_thread(claim.session_id, event_id)
        )

        async def commit(connection: Connection) -> Sequence[Position]:
            nonlocal decision
            async with connection.transaction():
                if await connection.fetchval(SQL["lock_epoch"], claim.session_id, claim.epoch) is None:
                    raise Fenced(f"Another worker holds session {claim.session_id}.")
                decision = await self._load_decision(connection, claim, event_id) or denial
                if decision.id != denial.id:
                    return ()
                positions = await append_batch(connection, self._objects, claim, AppendBatch([denial]))
                await connection.execute(SQL["answer_ask"], claim.session_id, event_id, "deny", DECIDED_BY_TURN, None)
                entry = audit.build_approval_entry(denial)
                await trail.add_entry(
                    connection,
                    claim.organisation,
                    entry,
                    principal=DECIDED_BY_TURN,
                    session=claim.session_id,
                    turn=claim.turn_id,
                )
                return positions

        positions = await self._commit_with_retries(commit, claim, [denial])
        return decision, positions

    async def _find_thread(self, session_id: str, event_id: str) -> str | None:
        row = await call_with_retries(
            lambda: self._database.fetchrow("thread_of_ask", session_id, event_id),
            on=(Unavailable,),
            seconds=30,
            wait_max=1,
        )
        found: str | None = row["thread_id"] if row is not None else None
        return found

    async def _load_decision(self, connection: Connection | None, claim: Claim, event_id: str) -> Event | None:
        arguments = claim.session_id, [event_id]
        rows = await (
            self._database.fetch("confirmations", *arguments)
            if connection is None
            else connection.fetch(SQL["confirmations"], *arguments)
        )
        for row in rows:
            return Event(row["type"], await self._load_body(row["body"], row["object_key"]), row["event_id"])
        return None

    async def claim_interrupts(self, claim: Claim) -> tuple[bool, Sequence[Position]]:
        """Returns whether the turn must stop. This is also true if an earlier attempt consumed the interrupt and was
        lost before it stopped. Interrupts of one thread are consumed too.
        """
        rows = await self._database.fetch("interrupts", claim.session_id, claim.controls_seq, claim.turn_id)
        positions = await self._append_interrupts(None, claim, rows)
        if _stop_whole_turn(claim, rows):
            return True, positions
        # A step is interrupted only by a message that was sent while it ran, not by one behind it in the queue.
        since = claim.controls_seq if claim.step is None else claim.first_seq
        wanted = await self._database.fetchrow("wants_interrupt", claim.session_id, since)
        return bool(wanted and wanted["wanted"]), positions

    async def interrupted_threads(self, claim: Claim) -> Sequence[str]:
        rows = await self._database.fetch("interrupted_threads", claim.session_id, claim.first_seq)
        return [row["thread_id"] for row in rows]

    async def _claim_late_interrupts(
        self, connection: Connection, claim: Claim
    ) -> tuple[Sequence[Position], bool, JsonObject | None]:
        """Consumes interrupts that arrived while the turn was ending. Also returns whether one stops the whole turn,
        and how the session ends with the turn, if a client asked for that.
        """
        head = await connection.fetchrow(SQL["lock_epoch"], claim.session_id, claim.epoch)
        if head is None:
            raise Fenced(f"Another worker holds session {claim.session_id}.")
        if head["control_seq"] < claim.controls_seq:
            return (), False, head["end_request"]
        rows = await connection.fetch(SQL["interrupts"], claim.session_id, claim.controls_seq, claim.turn_id)
        positions = await self._append_interrupts(connection, claim, rows)
        return positions, _stop_whole_turn(claim, rows), head["end_request"]

    async def _append_interrupts(
        self, connection: Connection | None, claim: Claim, rows: Sequence[Row]
    ) -> Sequence[Position]:
        fresh = [row for row in rows if not row["taken"]]
        if not fresh:
            return ()
        interrupts = [Event(events.USER_INTERRUPT, row["body"], row["event_id"]) for row in fresh]
        refs = [row["seq"] for row in fresh]
        if connection is None:
            return await self.append(claim, interrupts, refs=refs)
        return await append_batch(connection, self._objects, claim, AppendBatch(interrupts, refs=refs))

    async def _commit_with_retries(
        self, commit: _CommitFunction, claim: Claim, new_events: Sequence[Event]
    ) -> Sequence[Position]:
        async def attempt() -> Sequence[Position]:
            try:
                async with self._database.connection() as connection:
                    return await commit(connection)
            except asyncpg.UniqueViolationError:
                positions = await self._find_appended(claim, new_events)
                if len(positions) != len(new_events):
                    raise
                return positions

        return await call_with_retries(attempt, on=(Unavailable,), seconds=_APPEND_SECONDS, wait_max=1)

    async def _find_appended(self, claim: Claim, new_events: Sequence[Event]) -> Sequence[Position]:
        rows = await self._database.fetch("appended", claim.session_id, [event.id for event in new_events])
        found = {row["event_id"]: row for row in rows}
        if len(found) != len(new_events):
            return ()
        return [
            Position(
                found[event.id]["seq"],
                event,
                found[event.id]["created_at"],
                found[event.id]["created_at"],
                claim.turn_id,
            )
            for event in new_events
        ]

    async def _load_body(self, inline: JsonObject, key: str | None) -> JsonObject:
        return await self._objects.load_body(key) if key else inline


def _ensure_open(claim: Claim, found: object) -> bool:
    """Raises `Fenced` if a write found no open turn. Returns the value that it found."""
    if found is None:
        raise Fenced(f"The turn {claim.turn_id} has ended.")
    return bool(found)


async def _obeys_interrupts(connection: Connection, claim: Claim, pending: Sequence[str]) -> bool:
    """Whether a turn that would wait for these calls obeys interrupts instead: it waits for other sessions, or is a
    step without a model. The next claim resumes it.
    """
    if claim.step is not None and claim.step.definition.kind in INTERRUPTED_WHILE_WAITING:
        return bool(pending)
    return bool(await connection.fetchval(SQL["waits_for_group"], claim.session_id, claim.turn_id, pending))


def _build_error_event(outcome: TurnOutcome) -> Event | None:
    if outcome.error_type is None:
        return None
    status: events.RetryStatus = "terminal" if outcome.status is TurnStatus.FAILED else "exhausted"
    return events.session_error(outcome.error_type, outcome.error_message or "", status)


async def _record_error(connection: Connection, claim: Claim, entry: AuditEntry | None) -> None:
    """Adds the entry to the audit trail, if there is one."""
    if entry is None:
        return
    author = claim.author.id if claim.author else None
    session, turn = claim.session_id, claim.turn_id
    await trail.add_entry(connection, claim.organisation, entry, principal=author, session=session, turn=turn)


def _stop_whole_turn(claim: Claim, interrupts: Sequence[Row]) -> bool:
    """Returns whether one of the interrupts names no thread of a subagent."""
    whole_turn = {None, threads.primary_id(claim.session_id)}
    return any(row["body"].get(threads.THREAD_ID) in whole_turn for row in interrupts)


def _result_json(outcome: TurnOutcome) -> JsonObject:
    result: JsonObject = {
        "success": outcome.status is TurnStatus.COMPLETED and not outcome.step_failed,
        "text": outcome.text,
        "error": outcome.error_message,
        "pending": list(outcome.pending),
        "data": outcome.data,
    }
    if outcome.commit or outcome.commits:
        result |= {"commit": outcome.commit, "commits": {**outcome.commits}}
    return result


async def _read_chunks(output: FullOutput) -> AsyncIterator[bytes]:
    pieces = output.pieces()
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece
