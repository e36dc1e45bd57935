"""Assigns the next turn of a session to a worker, and chooses the work: resume a turn or start a new one.

A claim increments the epoch, the fencing token of the session, under a row lock. A turn whose worker was lost is
resumed. A turn that waits for the client is resumed when all results have arrived, or ended by a new message. Otherwise
the next queued input starts a turn. If a limit on concurrent turns is reached, the claim is rolled back, and the turn
waits until there is room (`deferred_turns.py`).
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import cast

from footplate.domain import ids
from footplate.domain.agents import agents_and_config
from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.agents.environment_config import find_missing_backend
from footplate.domain.errors import Unavailable
from footplate.domain.files.snapshots import SessionFiles
from footplate.domain.json import JsonObject, as_objects
from footplate.domain.organisations.limits import LimitName, OrganisationLimits
from footplate.domain.organisations.principals import Author
from footplate.domain.ports.engine import Claim, NothingToClaim
from footplate.domain.sessions import events, steps
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.shell_state import ShellState
from footplate.domain.sessions.steps import ClaimedStep, StepKind, StepState
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus, WhenBusy
from footplate.store.archive.reader import ArchiveReader
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.log.append import AppendBatch, append_batch
from footplate.store.log.deferred_turns import TurnDeferred, check_turn_slots, defer_turn
from footplate.store.log.files.file_snapshots import load_files_at, restored_tree_ids
from footplate.store.log.fork_history import ForkHistory
from footplate.store.log.session_ending import end_session, end_unstarted_work
from footplate.store.log.step_queue import (
    end_superseded_step,
    end_unstarted_step,
    find_early_end,
    load_claimed_step,
)
from footplate.store.object_store import Objects
from footplate.store.resources.limits import LimitStore, lock_limit
from footplate.store.resources.projects import load_session_projects
from footplate.store.resources.session_outputs import load_outputs
from footplate.store.row_mapping import Row


class _BackendNotOffered(Exception):
    """The worker does not offer the backend of the turn. Rolls the claim back."""

    def __init__(self, backend: str, epoch: int) -> None:
        super().__init__(backend)
        self.backend = backend
        self.epoch = epoch
        """The session's epoch after the rollback."""


class Claims:
    """Claims turns. Nearly every claim starts a queued step of an idle session. It therefore uses its own statements
    without a transaction; the query `claim_step` explains why that is safe.
    """

    def __init__(
        self,
        database: Database,
        objects: Objects,
        *,
        default_harness: str,
        limits: LimitStore | None = None,
        backends: Sequence[str] = (),
    ) -> None:
        """`backends` are those that the worker offers, the default first. Empty: the worker does not check them."""
        self._database = database
        self._limits = limits or LimitStore(database)
        self._objects = objects
        self._lineages = ForkHistory(database, ArchiveReader(database, objects))
        self._default_harness = default_harness
        self._backends = backends

    async def claim(self, organisation: str, session_id: str, worker: str) -> Claim | NothingToClaim:
        try:
            return await self._claim(organisation, session_id, worker)
        except _BackendNotOffered as error:
            await self._database.fetch("record_missing_backend", session_id, error.backend, worker, error.epoch)
            return NothingToClaim(needs_backend=error.backend)

    async def _claim(self, organisation: str, session_id: str, worker: str) -> Claim | NothingToClaim:
        limits = await self._limits.load(organisation)
        async with self._database.connection() as connection:
            found: Claim | NothingToClaim | None
            if limits.has_limit(LimitName.CONCURRENT_TURNS):
                found = await self._claim_within_limits(connection, limits, session_id, worker)
            else:
                found = await self._claim_step(connection, organisation, session_id, worker)
            if found is None:
                async with connection.transaction():
                    found = await self._claim_under_lock(connection, organisation, session_id, worker)
            if isinstance(found, NothingToClaim):
                return found
            old = found.old_holder
            alive = old not in {None, worker} and await connection.fetchval(SQL["lease_lives"], old)
            trees = restored_tree_ids([project.id for project in found.config.projects])
            files = replace(await load_files_at(connection, session_id, trees), outputs=found.files.outputs)
        # After the connection is released, because reading a fork's carried messages takes another connection.
        content = [*await self._load_carried_content(found), *found.content]
        return replace(found, content=content, old_holder_may_live=bool(alive), files=files)

    async def _claim_step(
        self, connection: Connection, organisation: str, session_id: str, worker: str
    ) -> Claim | NothingToClaim | None:
        """Claims the next step of an idle session. Returns None if `_claim_under_lock` must decide in a transaction."""
        row = await connection.fetchrow(SQL["claim_step"], session_id, organisation, worker)
        if row is None:
            return None
        content = content_blocks(await self._load_input_body(row))
        claim = await self._begin_turn(
            connection, row, row, content, organisation, session_id, worker, expected_seq=row["seq"]
        )
        if claim is not None:
            return claim
        async with connection.transaction():
            if await connection.fetchval(SQL["lock_epoch"], session_id, row["epoch"]) is None:
                # Another worker claimed the session while this one was paused. It must keep the turn.
                raise Unavailable(
                    f"Another worker claimed session {session_id} at the same time; the claim is retried."
                )
            return await self._claim_under_lock(connection, organisation, session_id, worker)

    async def _claim_within_limits(
        self, connection: Connection, limits: OrganisationLimits, session_id: str, worker: str
    ) -> Claim | NothingToClaim:
        organisation = limits.organisation
        try:
            async with connection.transaction():
                await lock_limit(connection, organisation, LimitName.CONCURRENT_TURNS)
                found = await self._claim_under_lock(connection, organisation, session_id, worker, limits)
        except TurnDeferred as error:
            await defer_turn(connection, session_id, error.scope)
            return NothingToClaim()
        return replace(found, frees_turn_slot=True) if isinstance(found, Claim) else found

    async def _claim_under_lock(
        self,
        connection: Connection,
        organisation: str,
        session_id: str,
        worker: str,
        limits: OrganisationLimits | None = None,
    ) -> Claim | NothingToClaim:
        head = await connection.fetchrow(SQL["claim_head"], session_id, organisation, worker)
        if head is None:
            return NothingToClaim()
        found = await self._find_work(connection, head, organisation, session_id, worker)
        if isinstance(found, NothingToClaim):
            await connection.execute(SQL["release_head"], session_id, head["epoch"], head["old_claimed_at"])
            if found.retry_after is not None:
                await connection.execute(SQL["wait_for_retry"], session_id, head["epoch"], found.retry_after)
            elif head["ends_when_done"]:
                ended = await end_unstarted_work(connection, organisation, session_id, found.positions)
                found = replace(
                    found, positions=[*found.positions, *ended.positions], to_wake=[*found.to_wake, *ended.to_wake]
                )
        elif limits is not None and head["old_status"] == "idle":
            await check_turn_slots(connection, limits, session_id, head["old_wake_at"])
        return found

    async def predict_next_turn(self, organisation: str, session_id: str) -> Claim | None:
        row = await self._database.fetchrow("outlook", session_id, organisation)
        if row is None:
            return None
        async with self._database.connection() as connection:
            files = await load_files_at(connection, session_id, restored_tree_ids(()))
        return Claim(
            organisation=organisation,
            session_id=session_id,
            epoch=row["epoch"],
            turn_id="",
            attempt=1,
            failures=0,
            first_seq=row["seq"],
            control_seq=row["control_seq"],
            controls_seq=row["seq"],
            config=self._config(row, {}),
            content=(),
            context=row["session_context"],
            entries=row["entries"],
            files=files,
        )

    def _config(self, session: Row, overrides: JsonObject) -> ResolvedConfig:
        resolved = agents_and_config.resolve_config(session["agent"], overrides, default_harness=self._default_harness)
        return replace(resolved, environment=session["environment"], mode=session["mode"])

    def _check_backend(self, config: ResolvedConfig, head: Row, *, is_committed: bool = False) -> None:
        """`is_committed`: the claim has raised the epoch without a transaction, so no rollback lowers it."""
        missing = find_missing_backend(config.environment_config, self._backends) if self._backends else None
        if missing is not None:
            raise _BackendNotOffered(missing, head["epoch"] if is_committed else head["epoch"] - 1)

    async def _find_work(
        self, connection: Connection, head: Row, organisation: str, session_id: str, worker: str
    ) -> Claim | NothingToClaim:
        if head["turn_id"] is not None:
            turn = await connection.fetchrow(SQL["turn_of_head"], session_id, head["turn_id"])
            assert turn is not None
            awaited = turn["result"].get("pending", []) if turn["status"] == TurnStatus.AWAITING else []
            remaining = await find_unresolved_calls(connection, session_id, turn["first_seq"], awaited)
            if not remaining or await _is_step_interrupted(connection, head, turn):
                return await self._resume_turn(connection, head, turn)
            step = await _find_next_step(connection, head, session_id)
            if step is None or step["when_busy"] == WhenBusy.WAIT:
                return await self._update_pending_calls(connection, head, turn, remaining)
            content = content_blocks(await self._load_input_body(step))
            positions = await _supersede_turn(connection, head, turn)
            claim = await self._begin_turn(connection, head, step, content, organisation, session_id, worker)
            assert claim is not None
            return replace(
                claim, superseded_harness=turn["config"]["harness"], positions=[*positions, *claim.positions]
            )
        return await self._start_next_step(connection, head, organisation, session_id, worker)

    async def _start_next_step(
        self, connection: Connection, head: Row, organisation: str, session_id: str, worker: str
    ) -> Claim | NothingToClaim:
        """Starts the next step whose condition is true. Steps before it are skipped."""
        positions: list[Position] = []
        while (step := await _find_next_step(connection, head, session_id)) is not None:
            if (step["wait_seconds"] or 0.0) > 0:
                return NothingToClaim(positions, retry_after=step["wait_seconds"])
            claimed = await load_claimed_step(connection, session_id, step)
            if claimed is not None and (early_end := find_early_end(claimed)) is not None:
                ended, may_continue = await end_unstarted_step(
                    connection, organisation, session_id, claimed, *early_end
                )
                positions += ended
                step_end, reason = early_end
                if claimed.definition.ends_session and step_end.state is StepState.FAILED:
                    end = SessionEnd(outcome=EndOutcome.FAILED, reason=reason)
                    session = await end_session(connection, organisation, session_id, end)
                    return NothingToClaim([*positions, *session.positions], to_wake=session.to_wake)
                if not may_continue:
                    break
                continue
            content = content_blocks(await self._load_input_body(step)) if claimed is None else ()
            claim = await self._begin_turn(connection, head, step, content, organisation, session_id, worker, claimed)
            assert claim is not None
            return replace(claim, positions=[*positions, *claim.positions])
        return NothingToClaim(positions)

    async def _begin_turn(
        self,
        connection: Connection,
        head: Row,
        step: Row,
        content: Sequence[JsonObject],
        organisation: str,
        session_id: str,
        worker: str,
        claimed: ClaimedStep | None = None,
        *,
        expected_seq: int | None = None,
    ) -> Claim | None:
        """Starts the turn. Returns None if the session has changed since position `expected_seq`, which cannot happen
        while the caller holds the head's lock.

        All steps that may fail come before the turn starts. The caller reads the content first, because ending a turn
        locks rows of `usage_by_day` and `usage_by_hour` that other sessions may wait for.
        """
        projects = await load_session_projects(connection, organisation, step["project_ids"], step["bases"])
        config = replace(_config_of_step(self._config(step, step["overrides"]), claimed), projects=projects)
        self._check_backend(config, head, is_committed=expected_seq is not None)
        context = {**step["session_context"], **step["context"]}
        outputs = await load_outputs(connection, session_id, step["outputs"])
        turn_id, running = ids.new_id(ids.TURN), events.status_running()
        started = None if claimed is None else steps.started_event(claimed)
        carried = await _find_carried_positions(connection, session_id, turn_id, step["fork"])
        row = await connection.fetchrow(
            *bind(
                "begin_turn",
                session_id=session_id,
                organisation=organisation,
                epoch=head["epoch"],
                turn_id=turn_id,
                position=step["position"],
                input_event_id=step["event_id"],
                config=asdict(config),
                context=context,
                running_event_id=running.id,
                timeout_seconds=config.timeout_seconds,
                holder=worker,
                expected_seq=expected_seq,
                sort_key=step["sort_key"],
                step_event_id=started.id if started else None,
                step_body=started.body if started else None,
            )
        )
        if row is None:
            return None
        now = row["created_at"]
        input_event = started or Event(events.USER_MESSAGE, step["input_body"], step["event_id"])
        return Claim(
            organisation=organisation,
            session_id=session_id,
            epoch=head["epoch"],
            turn_id=turn_id,
            attempt=1,
            failures=0,
            first_seq=row["seq"] - 1,
            controls_seq=step["position"],
            config=config,
            content=content,
            resources=step["resources"],
            forked_at=step["forked_at"],
            context=context,
            author=_load_author(step),
            entries=head["entries"],
            control_seq=head["control_seq"],
            old_holder=head["old_holder"],
            positions=[
                Position(row["seq"] - 1, input_event, now, now, turn_id),
                Position(row["seq"], running, now, now, turn_id),
            ],
            queue_seconds=(now - step["accepted_at"]).total_seconds(),
            trace=step["traceparent"],
            remaining_seconds=config.timeout_seconds,
            carried=carried,
            step=claimed,
            files=SessionFiles(outputs=outputs),
            shell=ShellState.from_json(step["shell"]),
            ends_when_done=step["ends_when_done"],
        )

    async def _resume_turn(self, connection: Connection, head: Row, turn: Row) -> Claim:
        before = _claim_for_stored_turn(head, turn)
        self._check_backend(before.config, head)
        projects = await load_session_projects(connection, turn["organisation"], turn["project_ids"], turn["bases"])
        outputs = await load_outputs(connection, turn["session_id"], turn["outputs"])
        content = content_blocks(await self._load_input_body(turn)) if turn["definition"] is None else ()
        row = await connection.fetchrow(
            SQL["resume_turn"], turn["session_id"], turn["id"], before.config.timeout_seconds
        )
        assert row is not None
        claim = replace(
            before,
            config=replace(before.config, projects=projects),
            attempt=row["attempt"],
            failures=row["failures"],
            handovers=row["handed_over"],
            remaining_seconds=row["seconds_left"],
            controls_seq=row["controls_seq"],
            content=content,
            resources=turn["resources"],
            forked_at=turn["forked_at"],
            context=turn["context"],
            trace=turn["traceparent"],
            step=await load_claimed_step(connection, turn["session_id"], turn, is_running=True),
            files=SessionFiles(outputs=outputs),
            shell=ShellState.from_json(turn["shell"]),
            carried=await _find_carried_positions(connection, turn["session_id"], turn["id"], turn["fork"]),
        )
        if head["old_status"] == "running":
            return claim
        await connection.execute(SQL["set_head_status"], turn["session_id"], head["epoch"], "running")
        positions = await append_batch(connection, self._objects, claim, AppendBatch([events.status_running()]))
        return replace(claim, positions=positions)

    async def _update_pending_calls(
        self, connection: Connection, head: Row, turn: Row, remaining: list[str]
    ) -> NothingToClaim:
        """Records which calls the turn still waits for after some of their results have arrived."""
        if remaining == turn["result"].get("pending"):
            return NothingToClaim()
        result = {**turn["result"], "pending": remaining}
        await connection.execute(SQL["set_turn_result"], turn["session_id"], turn["id"], result)
        idle = events.status_idle(TurnOutcome(status=TurnStatus.AWAITING, pending=tuple(remaining)).stop_reason)
        return NothingToClaim(
            await append_batch(connection, self._objects, _claim_for_stored_turn(head, turn), AppendBatch([idle]))
        )

    async def _load_carried_content(self, claim: Claim) -> list[JsonObject]:
        blocks: list[JsonObject] = []
        for seq in claim.carried:
            inline, key = await self._lineages.read_body(claim.session_id, seq)
            blocks += content_blocks(await self._objects.load_body(key) if key else inline)
        return blocks

    async def _load_input_body(self, row: Row) -> JsonObject:
        key = row["input_object"]
        return await self._objects.load_body(key) if key else row["input_body"]


async def _find_next_step(connection: Connection, head: Row, session_id: str) -> Row | None:
    """Returns the next pending step, unless the session is paused, or the author is disabled and has no successor. Then
    the session waits.
    """
    step = await connection.fetchrow(SQL["next_step"], session_id) if head["may_start"] else None
    if step is not None and step["author_id"] == "":
        await connection.execute(SQL["wait_for_author"], session_id, head["epoch"], step["sender_id"])
        return None
    return step


def _config_of_step(config: ResolvedConfig, step: ClaimedStep | None) -> ResolvedConfig:
    """Returns the configuration with the harness and the time limit of the step."""
    if step is None:
        return config
    definition = step.definition
    return replace(
        config,
        harness=steps.HARNESSES.get(definition.kind, config.harness),
        # A command has its own time limit, after which its output is kept.
        timeout_seconds=(definition.timeout_seconds if definition.kind is StepKind.PROMPT else None)
        or config.timeout_seconds,
    )


async def _find_carried_positions(
    connection: Connection, session_id: str, turn_id: str, fork: JsonObject | None
) -> Sequence[int]:
    """Returns the positions of a fork's carried messages, unless an earlier turn of it passed them to the model."""
    if fork is None or not fork["carried"]:
        return ()
    if await connection.fetchval(SQL["entries_of_others"], session_id, turn_id):
        return ()
    return cast("list[int]", fork["carried"])


def _claim_for_stored_turn(head: Row, turn: Row) -> Claim:
    """Returns a claim on a stored turn, without its input."""
    return Claim(
        organisation=turn["organisation"],
        session_id=turn["session_id"],
        epoch=head["epoch"],
        turn_id=turn["id"],
        attempt=turn["attempt"],
        failures=turn["failures"],
        first_seq=turn["first_seq"],
        controls_seq=turn["controls_seq"],
        config=agents_and_config.load_config(turn["config"]),
        content=(),
        context={},
        author=_load_author(turn),
        entries=head["entries"],
        control_seq=head["control_seq"],
        old_holder=head["old_holder"],
        ends_when_done=turn["ends_when_done"],
    )


def _load_author(row: Row) -> Author | None:
    return None if row["author_id"] is None else Author(row["author_id"], row["author_name"], row["author_kind"])


async def find_unresolved_calls(
    connection: Connection, session_id: str, first_seq: int, calls: Sequence[str]
) -> list[str]:
    """Returns the calls of a turn that have no result or decision yet."""
    if not calls:
        return []
    resolved = {row["id"] for row in await connection.fetch(SQL["answered_calls"], session_id, first_seq)}
    return [event_id for event_id in calls if event_id not in resolved]


async def _is_step_interrupted(connection: Connection, head: Row, turn: Row) -> bool:
    """Whether an interrupt arrived for a step without a model that waits. The turn resumes to obey it."""
    if turn["kind"] not in steps.INTERRUPTED_WHILE_WAITING or head["control_seq"] < turn["controls_seq"]:
        return False
    return bool(await connection.fetch(SQL["interrupts"], turn["session_id"], turn["controls_seq"], turn["id"]))


async def _supersede_turn(connection: Connection, head: Row, turn: Row) -> Sequence[Position]:
    """Ends a waiting turn because a new message arrived instead of results. Its open calls fail in the next turn."""
    result = {**turn["result"], "superseded": True}
    step = await load_claimed_step(connection, turn["session_id"], turn, is_running=True)
    await connection.fetchval(
        *bind(
            "end_turn",
            session_id=turn["session_id"],
            epoch=head["epoch"],
            turn_id=turn["id"],
            status=TurnStatus.COMPLETED,
            result=result,
            is_over=True,
            is_running=False,
            step_state=StepState.COMPLETED if step is None else StepState.CANCELLED,
            obeys_interrupt=False,
            problem=None,
        )
    )
    if step is None:
        return ()
    return await end_superseded_step(connection, turn["organisation"], turn["session_id"], step, turn)


def content_blocks(body: JsonObject) -> Sequence[JsonObject]:
    return as_objects(body.get("content"))
