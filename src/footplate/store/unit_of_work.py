"""The unit of work of an API request: all its changes in one transaction.

The response is stored in the same transaction, so a request that a client retries takes effect only once.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import asyncpg
import structlog

from footplate import failpoints
from footplate.domain import ids
from footplate.domain.agents.agents_and_config import Agent, EnvironmentRecord, fill_default_policies
from footplate.domain.errors import Conflict, InvalidRequest, NotFound, Unavailable
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.organisations.limits import LimitName, OrganisationLimits
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience, check_may_share
from footplate.domain.ports.api import (
    AcceptedInputs,
    ForkPoint,
    Input,
    RequestAttempt,
    StoredResponse,
    TranscriptImport,
)
from footplate.domain.ports.deployments import Firing
from footplate.domain.projects.project import NO_PROJECTS, ProjectSelection
from footplate.domain.sessions import events
from footplate.domain.sessions.cron import CronSchedule
from footplate.domain.sessions.deployments import CheckContext, DeploymentRun
from footplate.domain.sessions.ending import EndOutcome, SessionEnd, check_same_end
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.triggers import SignedDelivery, TriggerDelivery
from footplate.domain.sessions.turns import Activity, ActivityState, Mode, Session, SessionStatus
from footplate.store import row_mapping
from footplate.store.archive.reader import ArchiveReader
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.log import comments, inbox, transcript_import
from footplate.store.log.approval_edits_and_expiry import store_edits
from footplate.store.log.fork_creation import find_fork_origin, insert_fork
from footplate.store.log.inputs import append_inputs, append_notice
from footplate.store.log.session_ending import (
    EndedSession,
    end_member,
    end_session,
    load_end_request,
    request_end,
    stop_archived_work,
)
from footplate.store.log.session_groups.batches import BatchUnitOfWork
from footplate.store.object_store import Objects
from footplate.store.resources import (
    deployment_runs,
    deployments,
    files,
    members,
    notifications,
    policies,
    projects,
    session_templates,
    triggers,
    webhooks,
)
from footplate.store.resources.limits import LimitStore
from footplate.store.retention.session_deletion import delete_session_rows

log = structlog.get_logger(__name__)

_QUEUED: Final = Activity(ActivityState.QUEUED)


class UnitOfWorkFactory:
    def __init__(self, database: Database, objects: Objects, limits: LimitStore | None = None) -> None:
        self._database = database
        self._objects = objects
        self._limits = limits or LimitStore(database)
        self._archives = ArchiveReader(database, objects)

    @asynccontextmanager
    async def unit(self, principal: Principal, attempt: RequestAttempt | None) -> AsyncIterator["UnitOfWork"]:
        db = self._database
        limits = await self._limits.load(principal.organisation)
        async with (
            store_edits(db, principal),
            db.change_limiter.acquire_slot(principal.organisation),
            db.transaction() as connection,
        ):
            unit = UnitOfWork(connection, self._objects, self._archives, limits, principal, attempt)
            await unit.load_stored_response()
            yield unit
        for organisation, session_id in unit.deleted:
            await self._remove_objects(organisation, session_id)

    async def _remove_objects(self, organisation: str, session_id: str) -> None:
        """Deletes the session's objects, only after the commit. After a failure here, the sweep deletes the rest."""
        await failpoints.hit("deletion_committed")
        try:
            await self._objects.delete_session(organisation, session_id)
        except (Unavailable, OSError) as error:
            log.warning(
                "objects of a deleted session could not be deleted; will retry",
                action="deletion.late",
                session=session_id,
                reason=repr(error),
            )

    async def discard_response(self, response_id: int) -> None:
        try:
            await self._database.fetch("forget_answer", response_id)
        except Unavailable:
            log.warning("stored response could not be discarded", action="answer.kept", answer=response_id)


class UnitOfWork(
    projects.ProjectUnitOfWork,
    files.FileUnitOfWork,
    policies.PolicyUnitOfWork,
    members.MemberUnitOfWork,
    webhooks.WebhookUnitOfWork,
    notifications.NotificationUnitOfWork,
    BatchUnitOfWork,
    deployments.DeploymentUnitOfWork,
    triggers.TriggerUnitOfWork,
    inbox.InboxUnitOfWork,
    comments.CommentUnitOfWork,
    session_templates.SessionTemplateUnitOfWork,
):
    def __init__(
        self,
        connection: Connection,
        objects: Objects,
        archives: ArchiveReader,
        limits: OrganisationLimits,
        principal: Principal,
        attempt: RequestAttempt | None,
    ) -> None:
        self._connection = connection
        self._objects = objects
        self._archives = archives
        self._limits = limits
        self._principal = principal
        self._attempt = attempt
        self._fingerprint = _fingerprint(principal, attempt) if attempt else b""
        self.stored_response: StoredResponse | None = None
        self.response_id: int | None = None
        self._session_id: str | None = None
        """The session whose content the response contains, if any."""
        self.deleted: list[tuple[str, str]] = []
        """Organisation and id of the sessions whose objects are deleted after the commit."""

    async def load_stored_response(self) -> None:
        """Loads the stored response of an earlier attempt of this request. Waits for an attempt that still runs."""
        attempt = self._attempt
        if attempt is None:
            return
        lock_key = int.from_bytes(self._fingerprint[:8], "big", signed=True)
        await self._connection.execute(SQL["lock_answer"], lock_key)
        if attempt.idempotency_key is not None:
            row = await self._connection.fetchrow(SQL["answer_by_key"], self._fingerprint)
            if row is not None and row["body_hash"] != attempt.body_hash:
                raise InvalidRequest(
                    f"The idempotency key {attempt.idempotency_key!r} was already used with a different body.",
                    field="Idempotency-Key",
                    help_text="Use a new key for a new request, and send the same body when you retry.",
                )
        elif attempt.retry_count > 0:
            row = await self._connection.fetchrow(SQL["answer_by_retry"], self._fingerprint, _attempt_number(attempt))
            self.response_id = row["id"] if row is not None else None
        else:
            return
        if row is not None:
            self.stored_response = StoredResponse(row["status"], row["body"])

    async def store_response(self, response: StoredResponse) -> None:
        if self._attempt is None:
            return
        response_id = await self._connection.fetchval(
            *bind(
                "insert_answer",
                organisation=self._principal.organisation,
                fingerprint=self._fingerprint,
                body_hash=self._attempt.body_hash,
                attempt=_attempt_number(self._attempt),
                status=response.status,
                body=response.body,
                session_id=self._session_id,
            )
        )
        if self._attempt.idempotency_key is None:
            self.response_id = response_id

    async def create_agent(
        self, principal: Principal, *, name: str, definition: JsonObject, metadata: dict[str, str]
    ) -> Agent:
        row = await self._connection.fetchrow(
            SQL["insert_agent"],
            ids.new_id(ids.AGENT),
            principal.organisation,
            name,
            clean_object(definition),
            metadata,
        )
        return row_mapping.load_agent(_ensure_found(row, "agent", ""))

    async def update_agent(
        self, principal: Principal, agent_id: str, *, expected_version: int | None, change: Callable[[Agent], Agent]
    ) -> Agent:
        row = await self._connection.fetchrow(SQL["lock_agent"], agent_id, principal.organisation)
        old = row_mapping.load_agent(_ensure_found(row, "agent", agent_id))
        if old.archived_at is not None:
            raise InvalidRequest(f"Agent {agent_id!r} is archived.", help_text="Create a new agent.")
        if expected_version is not None and expected_version != old.version:
            raise Conflict(
                f"Agent {agent_id!r} is at version {old.version}, not {expected_version}.",
                help_text="Retrieve the agent, apply your change to its newest version, and send that version.",
            )
        new = change(old)
        if (new.name, new.definition, new.metadata) == (old.name, old.definition, old.metadata):
            return old
        row = await self._connection.fetchrow(
            SQL["update_agent"], agent_id, new.name, clean_object(new.definition), new.metadata
        )
        return row_mapping.load_agent(_ensure_found(row, "agent", agent_id))

    async def archive_agent(self, principal: Principal, agent_id: str) -> Agent:
        row = await self._connection.fetchrow(SQL["archive_agent"], agent_id, principal.organisation)
        return row_mapping.load_agent(_ensure_found(row, "agent", agent_id))

    async def create_environment(
        self,
        principal: Principal,
        *,
        name: str,
        description: str | None,
        config: JsonObject,
        metadata: dict[str, str],
    ) -> EnvironmentRecord:
        with _unique_name(name):
            row = await self._connection.fetchrow(
                *bind(
                    "insert_environment",
                    id=ids.new_id(ids.ENVIRONMENT),
                    organisation=principal.organisation,
                    name=name,
                    description=description,
                    config=config,
                    metadata=metadata,
                )
            )
        return row_mapping.load_environment(_ensure_found(row, "environment", ""))

    async def update_environment(
        self, principal: Principal, environment_id: str, change: Callable[[EnvironmentRecord], EnvironmentRecord]
    ) -> EnvironmentRecord:
        row = await self._connection.fetchrow(SQL["lock_environment"], environment_id, principal.organisation)
        old = row_mapping.load_environment(_ensure_found(row, "environment", environment_id))
        if old.archived_at is not None:
            raise InvalidRequest(
                f"Environment {environment_id!r} is archived and cannot be changed.",
                help_text="Create a new environment.",
                error_code="environment_archived",
            )
        new = change(old)
        with _unique_name(new.name):
            row = await self._connection.fetchrow(
                SQL["update_environment"], environment_id, new.name, new.description, new.config, new.metadata
            )
        return row_mapping.load_environment(_ensure_found(row, "environment", environment_id))

    async def archive_environment(self, principal: Principal, environment_id: str) -> EnvironmentRecord:
        row = await self._connection.fetchrow(SQL["archive_environment"], environment_id, principal.organisation)
        return row_mapping.load_environment(_ensure_found(row, "environment", environment_id))

    async def delete_environment(self, principal: Principal, environment_id: str) -> None:
        row = await self._connection.fetchrow(SQL["delete_environment"], environment_id, principal.organisation)
        _ensure_found(row, "environment", environment_id)

    async def create_session(
        self,
        principal: Principal,
        *,
        agent: JsonObject,
        environment_id: str,
        title: str | None,
        metadata: dict[str, str],
        context: JsonObject,
        inputs: Sequence[Input],
        mode: Mode = Mode.INTERACTIVE,
        selection: ProjectSelection = NO_PROJECTS,
        permissions: JsonObject | None = None,
        audience: Audience = EVERYONE,
        ends_when_done: bool = False,
        deployment_id: str | None = None,
        backend: str | None = None,
    ) -> tuple[Session, AcceptedInputs]:
        session_id = self._session_id = ids.new_id(ids.SESSION)
        await self.check_limit(principal, LimitName.SESSIONS)
        project_ids = await projects.choose_projects(self._connection, principal, selection)
        await members.check_audience(self._connection, principal, audience)
        row = await self._connection.fetchrow(
            *bind(
                "insert_session",
                id=session_id,
                organisation=principal.organisation,
                agent_id=agent["id"],
                agent_version=agent["version"],
                agent=clean_object(agent),
                environment_id=environment_id,
                title=title,
                metadata=metadata,
                context=clean_object(context),
                principal=principal.id,
                mode=mode,
                project_ids=list(project_ids),
                workspace_id=selection.workspace_id,
                permissions=permissions or {},
                visible_to=audience.dump(),
                ends_when_done=ends_when_done,
                deployment_id=deployment_id,
                environment_overrides={} if backend is None else {"backend": backend},
            )
        )
        if row is None:
            raise await self._environment_error(principal, environment_id)
        session = replace(row_mapping.load_session(row), owner_name=principal.name)
        if inputs:
            accepted = await self.send(principal, session_id, inputs)
            return replace(session, activity=_QUEUED), replace(accepted, changes_feed=True)
        return session, AcceptedInputs(organisation=principal.organisation, session_id=session_id, changes_feed=True)

    async def import_session(
        self, principal: Principal, transcript: TranscriptImport, *, audience: Audience = EVERYONE, **fields: Any
    ) -> tuple[Session, AcceptedInputs]:
        projects.check_in_scope(principal, ())
        if found := await transcript_import.find_imported_session(
            self._connection, principal, transcript.digest, audience
        ):
            self._session_id = found
            return await self._session(principal, found), AcceptedInputs(
                organisation=principal.organisation, session_id=found
            )
        session, accepted = await self.create_session(principal, inputs=(), audience=audience, **fields)
        await transcript_import.store_transcript(
            self._connection, self._objects, principal, session.id, transcript.digest, transcript.pieces
        )
        notice = events.imported(transcript.origin.transcript_id, transcript.origin.version)
        accepted = await append_notice(self._connection, principal, session.id, notice)
        return session, accepted

    async def fork_session(
        self,
        principal: Principal,
        session_id: str,
        *,
        point: ForkPoint,
        environment_id: str | None,
        change: Callable[[Session], Session],
        inputs: Sequence[Input],
    ) -> tuple[Session, AcceptedInputs]:
        fork_id = self._session_id = ids.new_id(ids.SESSION)
        head = _ensure_found(
            await self._connection.fetchrow(SQL["lock_parent"], session_id, principal.organisation),
            "session",
            session_id,
        )
        await self.check_limit(principal, LimitName.SESSIONS)
        origin = await find_fork_origin(self._connection, self._archives, head, point)
        attributes = change(replace(row_mapping.load_session(head), ends_when_done=False))
        row = await insert_fork(self._connection, principal, fork_id, origin, attributes, environment_id)
        if row is None:
            raise await self._environment_error(principal, str(environment_id))
        await self._connection.execute(SQL["fork_comments"], ids.new_id(ids.COMMENT), fork_id, session_id, origin.seq)
        notice = events.forked(session_id, origin.event_id, origin.seq)
        accepted = await append_notice(self._connection, principal, fork_id, notice)
        fork = replace(row_mapping.load_session(row), owner_name=principal.name)
        if inputs:
            sent = await self.send(principal, fork_id, inputs)
            accepted = replace(sent, positions=[*accepted.positions, *sent.positions])
            fork = replace(fork, activity=_QUEUED)
        return fork, accepted

    async def update_session(
        self, principal: Principal, session_id: str, change: Callable[[Session], Session]
    ) -> tuple[Session, AcceptedInputs]:
        self._session_id = session_id
        unlocked = await self._session(principal, session_id)
        if _access(change(unlocked)) != _access(unlocked):
            await self._connection.fetch(SQL["lock_descendant_rows"], session_id)
        old = await self._lock_session(principal, session_id)
        new = change(old)
        changes = _changed_fields(old, new)
        if changes is None:
            return old, AcceptedInputs(organisation=principal.organisation, session_id=session_id)
        if new.agent != old.agent:
            _ensure_idle(old, "given other tools")
            if old.end is not None:
                raise Conflict(
                    f"Session {session_id!r} has ended.", help_text="Fork it, and give the fork other tools."
                )
        if _access(new) != _access(old):
            check_may_share(principal, old.owner_id)
        if new.audience != old.audience:
            await members.check_audience(self._connection, principal, new.audience)
        owner_id = new.owner_id if new.owner_id != old.owner_id else None
        await self.check_members(principal, [owner_id] if owner_id else [])
        audience = new.audience.dump() if new.audience != old.audience else None
        await self._connection.execute(
            *bind(
                "update_session",
                id=session_id,
                title=new.title,
                metadata=new.metadata,
                agent=clean_object(new.agent),
                permissions=new.permissions,
                owner=owner_id,
                visible_to=audience,
            )
        )
        if _access(new) != _access(old):
            await self._connection.execute(SQL["share_descendants"], session_id, owner_id, audience)
        notice = Event(events.SESSION_UPDATED, changes)
        accepted = await append_notice(self._connection, principal, session_id, notice)
        return await self._session(principal, session_id), accepted

    async def end_session(
        self, principal: Principal, session_id: str, end: SessionEnd
    ) -> tuple[Session, AcceptedInputs]:
        self._session_id = session_id
        head = _ensure_found(
            await self._connection.fetchrow(SQL["lock_head"], session_id, principal.organisation), "session", session_id
        )
        session = await self._session(principal, session_id)
        accepted = AcceptedInputs(organisation=principal.organisation, session_id=session_id)
        requested = session.end or load_end_request(head["end_request"])
        if requested is not None:
            check_same_end(session_id, requested, end)
        elif session.status is SessionStatus.RUNNING:
            await request_end(self._connection, session_id, end)
            accepted = await self.send(principal, session_id, [Input(type=events.USER_INTERRUPT, body={})])
        else:
            ended = await end_session(self._connection, principal.organisation, session_id, end)
            # The nudge ends the process that a worker keeps warm for the session.
            accepted = replace(
                accepted, positions=ended.positions, to_wake=ended.to_wake, nudge=True, cancels_children=True
            )
        return await self._session(principal, session_id), accepted

    async def archive_session(self, principal: Principal, session_id: str) -> tuple[Session, AcceptedInputs]:
        self._session_id = session_id
        session = await self._lock_session(principal, session_id)
        _ensure_idle(session, "archived")
        ended = await self._end_member(principal, session_id, "The session was archived.")
        stopped = await stop_archived_work(self._connection, principal, session_id)
        await self._connection.execute(SQL["archive_session"], session_id)
        accepted = AcceptedInputs(
            organisation=principal.organisation,
            session_id=session_id,
            positions=[*ended.positions, *stopped],
            to_wake=ended.to_wake,
            cancels_children=True,
            changes_feed=True,
        )
        return await self._session(principal, session_id), accepted

    async def delete_session(self, principal: Principal, session_id: str) -> AcceptedInputs:
        session = await self._lock_session(principal, session_id)
        _ensure_idle(session, "deleted")
        ended = await self._end_member(principal, session_id, "The session was deleted.")
        accepted = await append_notice(self._connection, principal, session_id, Event(events.SESSION_DELETED))
        accepted = replace(
            accepted,
            positions=[*ended.positions, *accepted.positions],
            to_wake=ended.to_wake,
            cancels_children=True,
        )
        if not await delete_session_rows(self._connection, principal.organisation, session_id):
            self.deleted.append((principal.organisation, session_id))
        return accepted

    async def _end_member(self, principal: Principal, session_id: str, reason: str) -> EndedSession:
        end = SessionEnd(outcome=EndOutcome.CANCELLED, reason=reason, ended_by=principal.id)
        return await end_member(self._connection, principal.organisation, session_id, end)

    async def run_deployment(
        self, principal: Principal, deployment_id: str, *, check_context: CheckContext
    ) -> tuple[DeploymentRun, Sequence[AcceptedInputs]]:
        deployment = deployments.load_deployment(await self._lock_deployment(principal, deployment_id))
        started = await deployment_runs.start_run(
            self, self._connection, deployment, principal, check_context=check_context
        )
        self._session_id = started.run.session_id
        return started.run, started.accepted

    async def fire_deployment(
        self,
        organisation: str,
        deployment_id: str,
        scheduled_at: datetime,
        *,
        schedule: CronSchedule | None,
        check_context: CheckContext,
    ) -> Firing:
        """Starts the run of a time of the schedule. `schedule`: what the engine knows, None for a buffered run."""
        row = await self._connection.fetchrow(SQL["lock_deployment"], deployment_id, organisation)
        if row is None:
            return Firing(is_current=False)
        deployment = deployments.load_deployment(row)
        is_current = schedule is None or schedule == deployment.definition.schedule
        if deployment.archived_at is not None or deployment.is_paused or not is_current:
            return Firing(is_current=False)
        if schedule is None and row["buffered_at"] != scheduled_at:
            return Firing()
        started = await deployment_runs.fire(
            self,
            self._connection,
            deployment,
            deployment_runs.load_acting_principal(row),
            scheduled_at,
            buffered_at=row["buffered_at"],
            check_context=check_context,
        )
        return Firing() if started is None else Firing(run=started.run, accepted=started.accepted)

    async def process_trigger_delivery(
        self, organisation: str, signed: SignedDelivery, *, check_context: CheckContext
    ) -> tuple[TriggerDelivery, AcceptedInputs | None]:
        processed = await triggers.process_delivery(self, self._connection, organisation, signed, check_context)
        return processed.delivery, processed.accepted

    async def send(self, principal: Principal, session_id: str, inputs: Sequence[Input]) -> AcceptedInputs:
        self._session_id = session_id
        return await append_inputs(self._connection, self._objects, principal, session_id, inputs, limits=self._limits)

    async def _environment_error(self, principal: Principal, environment_id: str) -> Exception:
        row = await self._connection.fetchrow(SQL["environment"], environment_id, principal.organisation)
        if row is None:
            return NotFound("environment", environment_id)
        return InvalidRequest(
            f"environment_id: {environment_id} is archived",
            field="environment_id",
            help_text="Choose another environment.",
        )

    async def _lock_session(self, principal: Principal, session_id: str) -> Session:
        row = await self._connection.fetchrow(SQL["lock_head"], session_id, principal.organisation)
        _ensure_found(row, "session", session_id)
        return await self._session(principal, session_id)

    async def _session(self, principal: Principal, session_id: str) -> Session:
        row = await self._connection.fetchrow(SQL["session"], session_id, principal.organisation)
        return row_mapping.load_session(_ensure_found(row, "session", session_id))


def _attempt_number(attempt: RequestAttempt) -> int:
    """Returns the attempt's number, limited to the bits of the column `served`."""
    return min(attempt.retry_count, 62)


def _fingerprint(principal: Principal, attempt: RequestAttempt) -> bytes:
    scope = () if principal.project_ids is None else tuple(sorted(principal.project_ids))
    parts = (principal.organisation, principal.id, attempt.method, attempt.path, *scope)
    text = "\n".join(parts).encode()
    if attempt.idempotency_key is not None:
        return hashlib.sha256(b"key\n" + text + b"\n" + attempt.idempotency_key.encode()).digest()
    return hashlib.sha256(b"retry\n" + text + b"\n" + attempt.body_hash).digest()


def _ensure_found(row: row_mapping.Row | None, noun: str, item_id: str) -> row_mapping.Row:
    if row is None:
        raise NotFound(noun, item_id)
    return row


def _access(session: Session) -> tuple[str | None, Audience]:
    return session.owner_id, session.audience


def _changed_fields(old: Session, new: Session) -> JsonObject | None:
    """Returns the body of `session.updated`: the complete values of the changed fields. None if nothing changed."""
    if new == old:
        return None
    changes: JsonObject = {}
    if new.title != old.title:
        changes["title"] = new.title
    if new.metadata != old.metadata and new.metadata:
        changes["metadata"] = {**new.metadata}
    if new.agent != old.agent:
        changes["agent"] = fill_default_policies(new.agent)
    if new.permissions != old.permissions:
        changes["permissions"] = new.permissions
    if new.owner_id != old.owner_id:
        changes["owner_id"] = new.owner_id
    if new.audience != old.audience:
        changes["visibility"] = new.audience.visibility
    return changes


def _ensure_idle(session: Session, action: str) -> None:
    if session.end is None and session.status != "idle":
        raise Conflict(
            f"Session {session.id!r} is {session.status} and cannot be {action}.",
            help_text="Interrupt it (`footplate interrupt`, or a user.interrupt event) and wait until it is idle.",
        )


class _unique_name:  # noqa: N801 - reads as a statement where it is used
    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, asyncpg.UniqueViolationError):
            raise Conflict(
                f"An environment named {self._name!r} already exists.", help_text="Choose another name."
            ) from error
