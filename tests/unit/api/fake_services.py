"""In-memory fakes of the ports behind the api: dictionaries that fulfil the same contracts."""

import asyncio
from collections import ChainMap
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from footplate.domain import ids
from footplate.domain.agents.agents_and_config import Agent, EnvironmentRecord
from footplate.domain.audit import AuditEntry, AuditFilter, AuditVerification
from footplate.domain.errors import Conflict, InvalidRequest, NotFound, Unauthenticated
from footplate.domain.files.uploaded_files import StoredFile
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience
from footplate.domain.pagination import Page
from footplate.domain.policy.approvals import Approval
from footplate.domain.policy.permissions import ExpectedPolicy, Layer, OrganisationPolicy
from footplate.domain.policy.policy_replay import CallFilter, SessionRules, StoredCall
from footplate.domain.ports.api import (
    AcceptedInputs,
    Cursor,
    EventPage,
    ForkPoint,
    HealthReport,
    Input,
    RequestAttempt,
    SessionFilter,
    StoredResponse,
    TranscriptImport,
)
from footplate.domain.ports.deployment_health import QueueRecord, WorkerRecord
from footplate.domain.ports.harness import Entry
from footplate.domain.ports.terminals import TerminalFrame, TerminalInput, TerminalRecording
from footplate.domain.ports.usage_report import UsageQuery, UsageRow
from footplate.domain.projects.project import NO_PROJECTS, Project, ProjectSelection, Workspace
from footplate.domain.sessions import events
from footplate.domain.sessions.ending import SessionEnd, check_same_end
from footplate.domain.sessions.events import Event, Position, Usage
from footplate.domain.sessions.feed import FeedViewer
from footplate.domain.sessions.threads import is_visible
from footplate.domain.sessions.turns import (
    ForkedFrom,
    Mode,
    Session,
    SessionState,
    SessionStatus,
    TotalUsage,
    Turn,
)

from .fake_batches import BatchWorld, FakeBatchReads, FakeBatchUnit
from .fake_deployments import DeploymentWorld, FakeDeploymentReads, FakeDeploymentUnit
from .fake_files import FakeFileUnit, FileWorld
from .fake_inbox import FakeInboxReads, FakeInboxUnit, InboxWorld
from .fake_limits import FakeLimitUnit, LimitWorld
from .fake_members import FakeMemberReads, FakeMemberUnit, MemberWorld
from .fake_notifications import FakeNotificationReads, FakeNotificationUnit, NotificationWorld
from .fake_projects import FakeProjectUnit, ProjectWorld
from .fake_steps import FakeStepReads, FakeStepUnit, StepWorld
from .fake_triggers import FakeTriggerReads, FakeTriggerUnit, TriggerWorld
from .fake_webhooks import FakeWebhookReads, FakeWebhookUnit, WebhookWorld

START = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Principal("org_a", "key_a", "alice", frozenset({"admin"}))
BOB = Principal("org_b", "key_b", "bob", frozenset({"admin"}))
CAROL = Principal("org_a", "key_c", "carol", frozenset({"member"}))
DAVE = Principal("org_a", "key_d", "dave", frozenset({"member", "policy_admin"}))
KEYS = {"secret-a": ALICE, "secret-b": BOB, "secret-c": CAROL, "secret-d": DAVE}

Row = TypeVar("Row", Agent, EnvironmentRecord, Session, Project, Workspace, StoredFile)


@dataclass
class World:
    """All stored data. The clock advances by a second with each write, so that the order is always certain."""

    agents: dict[str, list[Agent]] = field(default_factory=dict)
    environments: dict[str, EnvironmentRecord] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    workers: list[WorkerRecord] = field(default_factory=list)
    log: dict[str, list[Position]] = field(default_factory=dict)
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    imports: dict[tuple[str, bytes], str] = field(default_factory=dict)
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    responses: dict[tuple[object, ...], tuple[bytes, StoredResponse]] = field(default_factory=dict)
    accepted: list[AcceptedInputs] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    projects: ProjectWorld = field(default_factory=ProjectWorld)
    files: FileWorld = field(default_factory=FileWorld)
    members: MemberWorld = field(default_factory=MemberWorld)
    limits: LimitWorld = field(default_factory=LimitWorld)
    steps: StepWorld = field(default_factory=StepWorld)
    batches: BatchWorld = field(default_factory=BatchWorld)
    webhooks: WebhookWorld = field(default_factory=WebhookWorld)
    notifications: NotificationWorld = field(default_factory=NotificationWorld)
    deployments: DeploymentWorld = field(default_factory=DeploymentWorld)
    triggers: TriggerWorld = field(default_factory=TriggerWorld)
    inbox: InboxWorld = field(default_factory=InboxWorld)
    policies: dict[str, OrganisationPolicy] = field(default_factory=dict)
    approvals: list[Approval] = field(default_factory=list)
    audit: dict[str, list[AuditEntry]] = field(default_factory=dict)
    calls: dict[str, list[StoredCall]] = field(default_factory=dict)
    writes: int = 0

    def now(self) -> datetime:
        self.writes += 1
        return START + timedelta(seconds=self.writes)


def _key(row: Row) -> tuple[datetime, str]:
    return row.created_at, row.id


def _is_in_range(created_at: datetime, page: Page) -> bool:
    return (
        (page.created_gt is None or created_at > page.created_gt)
        and (page.created_gte is None or created_at >= page.created_gte)
        and (page.created_lt is None or created_at < page.created_lt)
        and (page.created_lte is None or created_at <= page.created_lte)
    )


def _page(rows: list[Row], principal: Principal, page: Page) -> list[Row]:
    matching = [
        row for row in rows if row.organisation == principal.organisation and _is_in_range(row.created_at, page)
    ]
    matching = [row for row in matching if page.include_archived or row.archived_at is None]
    matching.sort(key=_key, reverse=page.order == "desc")
    keys = [_key(row) for row in matching]
    if page.before is not None:
        return matching[: keys.index(page.before)][-page.limit :]
    start = keys.index(page.after) + 1 if page.after is not None else 0
    return matching[start : start + page.limit]


class FakeReads(
    FakeMemberReads,
    FakeStepReads,
    FakeBatchReads,
    FakeWebhookReads,
    FakeNotificationReads,
    FakeDeploymentReads,
    FakeTriggerReads,
    FakeInboxReads,
):
    def __init__(self, world: World) -> None:
        self.trigger_world = world.triggers
        self.inbox_world = world.inbox
        self.webhook_world = world.webhooks
        self.notification_world = world.notifications
        self.step_world = world.steps
        self.batch_world = world.batches
        self.deployment_world = world.deployments
        self.member_world = world.members
        self._world = world

    async def agent(self, principal: Principal, agent_id: str, version: int | None = None) -> Agent:
        versions = self._world.agents.get(agent_id, [])
        if not versions or versions[0].organisation != principal.organisation:
            raise NotFound("agent", agent_id)
        if version is None:
            return versions[-1]
        if version > len(versions):
            raise NotFound("agent version", f"{agent_id}@{version}")
        return versions[version - 1]

    async def agents(self, principal: Principal, page: Page) -> Sequence[Agent]:
        return _page([versions[-1] for versions in self._world.agents.values()], principal, page)

    async def agent_versions(
        self, principal: Principal, agent_id: str, *, limit: int, before_version: int | None
    ) -> Sequence[Agent]:
        await self.agent(principal, agent_id)
        newest_first = self._world.agents[agent_id][::-1]
        return [row for row in newest_first if before_version is None or row.version < before_version][:limit]

    async def environment(self, principal: Principal, environment_id: str) -> EnvironmentRecord:
        record = self._world.environments.get(environment_id)
        if record is None or record.organisation != principal.organisation:
            raise NotFound("environment", environment_id)
        return record

    async def workers(self) -> Sequence[WorkerRecord]:
        return self._world.workers

    async def database_versions(self) -> Mapping[str, str]:
        return {"postgresql": "18.4", "schema_revision": "0055"}

    async def count_workers_by_backend(self) -> Mapping[str, int]:
        return {"sandbox": 2}

    async def environments(self, principal: Principal, page: Page) -> Sequence[EnvironmentRecord]:
        return _page(list(self._world.environments.values()), principal, page)

    async def policy(self, principal: Principal) -> OrganisationPolicy:
        return self._world.policies.get(principal.organisation, OrganisationPolicy({}))

    async def approval(self, principal: Principal, event_id: str, *, is_question: bool = False) -> Approval:
        found = next((one for one in self._list_approvals(principal, is_question) if one.id == event_id), None)
        if found is None:
            raise NotFound("question" if is_question else "approval", event_id)
        return found

    async def approvals(
        self, principal: Principal, page: Page, *, session_id: str | None = None, is_question: bool = False
    ) -> Sequence[Approval]:
        found = [one for one in self._list_approvals(principal, is_question) if session_id in {None, one.session_id}]
        after = [one for one in found if page.after is None or (one.created_at, one.id) > page.after]
        return [one for one in after if one.closed_at is None][: page.limit]

    async def audit(self, principal: Principal, page: Page, where: AuditFilter) -> Sequence[AuditEntry]:
        found = [one for one in self._world.audit.get(principal.organisation, []) if where.kind in {None, one.kind}]
        return found[: page.limit]

    async def verify_audit(self, principal: Principal, head: str | None = None) -> AuditVerification:
        faults = [] if head in {None, "0" * 64} else [f"no batch has the saved hash {head}"]
        return AuditVerification(len(self._world.audit.get(principal.organisation, [])), 1, 0, "0" * 64, faults)

    async def calls(
        self, principal: Principal, where: CallFilter, *, limit: int, after: tuple[datetime, str] | None
    ) -> Sequence[StoredCall]:
        mine = sorted(self._world.calls.get(principal.organisation, []), key=lambda one: (one.created_at, one.id))
        return [
            one
            for one in reversed(mine)
            if (after is None or (one.created_at, one.id) < after)
            and where.session_id in {None, one.session_id}
            and (where.since is None or one.created_at >= where.since)
        ][:limit]

    async def rules_by_session(self, principal: Principal, session_ids: Sequence[str]) -> Mapping[str, SessionRules]:
        own = (Layer.ORGANISATION, (await self.policy(principal)).permissions)
        return {
            one.id: SessionRules(agent=one.agent, layers=[own, (Layer.SESSION, one.permissions)])
            for one in self._world.sessions.values()
            if one.id in session_ids and one.organisation == principal.organisation
        }

    async def rules_of_new_session(
        self, principal: Principal, agent: JsonObject, project_ids: Sequence[str]
    ) -> SessionRules:
        projects = [(Layer.PROJECT, self._world.projects.project(principal, one).permissions) for one in project_ids]
        own = (Layer.ORGANISATION, (await self.policy(principal)).permissions)
        return SessionRules(agent=agent, layers=[own, *projects])

    def _list_approvals(self, principal: Principal, is_question: bool) -> list[Approval]:  # noqa: FBT001 - a double
        mine = {one.id for one in self._world.sessions.values() if one.organisation == principal.organisation}
        listed = [one for one in self._world.approvals if ("question" in one.body) is is_question]
        return [one for one in listed if one.session_id in mine]

    async def project(self, principal: Principal, project_id: str) -> Project:
        return self._world.projects.project(principal, project_id)

    async def projects(self, principal: Principal, page: Page, *, path: str | None = None) -> Sequence[Project]:
        rows = [row for row in self._world.projects.projects.values() if path is None or row.path == path]
        return _page(rows, principal, page)

    async def file(self, principal: Principal, file_id: str) -> StoredFile:
        return self._world.files.file(principal, file_id)

    async def files(
        self, principal: Principal, page: Page, *, ids: Sequence[str] | None = None, session_id: str | None = None
    ) -> Sequence[StoredFile]:
        rows = [row for row in self._world.files.files.values() if ids is None or row.id in ids]
        return _page([row for row in rows if session_id in {None, row.session_id}], principal, page)

    async def omitted_outputs(self, principal: Principal, session_id: str) -> Sequence[str]:
        del principal, session_id
        return ()

    async def workspace(self, principal: Principal, workspace_id: str) -> Workspace:
        return self._world.projects.workspace(principal, workspace_id)

    async def workspaces(self, principal: Principal, page: Page) -> Sequence[Workspace]:
        return _page(list(self._world.projects.workspaces.values()), principal, page)

    async def check_session_visible(self, principal: Principal, session_id: str) -> None:
        """Lets all pass in a world without sessions: the fakes of some routes have sessions of their own."""
        if self._world.sessions:
            await self.session(principal, session_id)

    async def find_visible_sessions(self, principal: Principal, session_ids: Sequence[str]) -> frozenset[str]:
        sessions = self._world.sessions
        return frozenset(
            each for each in session_ids if each in sessions and sessions[each].organisation == principal.organisation
        )

    async def session(self, principal: Principal, session_id: str) -> Session:
        session = self._world.sessions.get(session_id)
        if session is None or session.organisation != principal.organisation:
            raise NotFound("session", session_id)
        return session

    async def total_usage(self, principal: Principal, session_id: str) -> TotalUsage:
        return TotalUsage(1, (await self.session(principal, session_id)).usage)

    async def sessions(self, principal: Principal, page: Page, where: SessionFilter) -> Sequence[Session]:
        rows = list(self._world.sessions.values())
        if where.agent_id is not None:
            rows = [row for row in rows if row.agent["id"] == where.agent_id]
        if where.agent_version is not None:
            rows = [row for row in rows if row.agent["version"] == where.agent_version]
        if where.statuses:
            rows = [row for row in rows if row.status in where.statuses]
        if where.deployment_id is not None:
            rows = [row for row in rows if row.deployment_id == where.deployment_id]
        if where.is_pinned is not None:
            rows = [row for row in rows if ((principal.id, row.id) in self.inbox_world.pins) is where.is_pinned]
        if where.states:
            rows = [row for row in rows if row.state in where.states]
        return _page(rows, principal, page)

    async def count_sessions(
        self, principal: Principal, page: Page, where: SessionFilter
    ) -> Mapping[SessionState, int]:
        rows = await self.sessions(principal, replace(page, limit=1000), where)
        return {state: sum(row.state is state for row in rows) for state in SessionState}

    async def events(self, principal: Principal, session_id: str, page: EventPage) -> Sequence[Position]:
        await self.session(principal, session_id)
        rows = [row for row in self._world.log[session_id] if not page.types or row.event.type in page.types]
        rows = [
            row
            for row in rows
            if is_visible(row.event.type, row.event.body, page.thread_id, with_extensions=page.with_extensions)
        ]
        if page.order == "desc":
            rows = [row for row in rows[::-1] if page.after_seq is None or row.seq < page.after_seq]
        elif page.after_seq is not None:
            rows = [row for row in rows if row.seq > page.after_seq]
        return rows[: page.limit]

    async def conversation(self, principal: Principal, session_id: str) -> AsyncIterator[Entry]:
        await self.session(principal, session_id)
        for entry in self._world.entries.get(session_id, []):
            yield entry

    async def turn(self, principal: Principal, session_id: str, turn_id: str) -> Turn:
        await self.session(principal, session_id)
        for turn in self._world.turns.get(session_id, []):
            if turn.id == turn_id:
                return turn
        raise NotFound("turn", turn_id)

    async def turns(self, principal: Principal, session_id: str, *, limit: int, before: str | None) -> Sequence[Turn]:
        await self.session(principal, session_id)
        rows = sorted(self._world.turns.get(session_id, []), key=lambda turn: turn.id, reverse=True)
        return [turn for turn in rows if before is None or turn.id < before][:limit]


class FakeUnit(
    FakeProjectUnit,
    FakeFileUnit,
    FakeMemberUnit,
    FakeLimitUnit,
    FakeStepUnit,
    FakeBatchUnit,
    FakeWebhookUnit,
    FakeNotificationUnit,
    FakeDeploymentUnit,
    FakeTriggerUnit,
    FakeInboxUnit,
):
    def __init__(self, world: World, principal: Principal, attempt: RequestAttempt | None) -> None:
        super().__init__(world)
        self.member_world = world.members
        self.limit_world = world.limits
        self.step_world = world.steps
        self.batch_world = world.batches
        self.webhook_world = world.webhooks
        self.notification_world = world.notifications
        self.deployment_world = world.deployments
        self.trigger_world = world.triggers
        self.inbox_world = world.inbox
        self._world = world
        self._files = world
        self._reads = FakeReads(world)
        self._attempt = attempt
        self._key: tuple[object, ...] = ()
        self._replay: StoredResponse | None = None
        if attempt is not None:
            self._key = (principal.id, attempt.method, attempt.path, attempt.idempotency_key or attempt.body_hash)
            self._find_stored_response(attempt)

    def _find_stored_response(self, attempt: RequestAttempt) -> None:
        known = self._world.responses.get(self._key)
        if known is None or (attempt.idempotency_key is None and attempt.retry_count == 0):
            return
        if known[0] != attempt.body_hash:
            raise InvalidRequest("The key was used before, with another body.", field="Idempotency-Key")
        self._replay = known[1]

    @property
    def stored_response(self) -> StoredResponse | None:
        return self._replay

    @property
    def response_id(self) -> int | None:
        return None if self._attempt is None or self._attempt.idempotency_key is not None else 1

    async def record(self, principal: Principal, entry: AuditEntry) -> None:
        made = replace(entry, principal=principal.id, created_at=self._world.now())
        self._world.audit.setdefault(principal.organisation, []).append(made)

    async def store_response(self, response: StoredResponse) -> None:
        assert self._attempt is not None
        self._world.responses[self._key] = (self._attempt.body_hash, response)

    async def create_agent(
        self, principal: Principal, *, name: str, definition: JsonObject, metadata: dict[str, str]
    ) -> Agent:
        now = self._world.now()
        agent = Agent(
            id=ids.new_id(ids.AGENT),
            organisation=principal.organisation,
            version=1,
            name=name,
            definition=definition,
            metadata=metadata,
            created_at=now,
            updated_at=now,
        )
        self._world.agents[agent.id] = [agent]
        return agent

    async def update_agent(
        self, principal: Principal, agent_id: str, *, expected_version: int | None, change: Callable[[Agent], Agent]
    ) -> Agent:
        newest = await self._reads.agent(principal, agent_id)
        if expected_version is not None and expected_version != newest.version:
            raise Conflict(f"Agent {agent_id!r} is at version {newest.version}.")
        changed = change(newest)
        if changed == newest:
            return newest
        agent = replace(changed, version=newest.version + 1, updated_at=self._world.now())
        self._world.agents[agent_id].append(agent)
        return agent

    async def archive_agent(self, principal: Principal, agent_id: str) -> Agent:
        agent = replace(await self._reads.agent(principal, agent_id), archived_at=self._world.now())
        self._world.agents[agent_id][-1] = agent
        return agent

    async def create_environment(
        self,
        principal: Principal,
        *,
        name: str,
        description: str | None,
        config: JsonObject,
        metadata: dict[str, str],
    ) -> EnvironmentRecord:
        if any(record.name == name for record in self._world.environments.values()):
            raise Conflict(f"There is an environment named {name!r} already.")
        now = self._world.now()
        record = EnvironmentRecord(
            id=ids.new_id(ids.ENVIRONMENT),
            organisation=principal.organisation,
            name=name,
            description=description,
            config=config,
            metadata=metadata,
            created_at=now,
            updated_at=now,
        )
        self._world.environments[record.id] = record
        return record

    async def update_environment(
        self, principal: Principal, environment_id: str, change: Callable[[EnvironmentRecord], EnvironmentRecord]
    ) -> EnvironmentRecord:
        record = change(await self._reads.environment(principal, environment_id))
        self._world.environments[record.id] = record
        return record

    async def archive_environment(self, principal: Principal, environment_id: str) -> EnvironmentRecord:
        now = self._world.now()
        return await self.update_environment(principal, environment_id, lambda record: replace(record, archived_at=now))

    async def delete_environment(self, principal: Principal, environment_id: str) -> None:
        del self._world.environments[(await self._reads.environment(principal, environment_id)).id]

    async def set_policy(
        self,
        principal: Principal,
        permissions: JsonObject | None,
        approvals: JsonObject | None = None,
        *,
        expected: ExpectedPolicy | None = None,
    ) -> OrganisationPolicy:
        old = self._world.policies.get(principal.organisation, OrganisationPolicy({}))
        if expected is not None and expected.updated_at != old.updated_at:
            raise Conflict("changed meanwhile", field="expected_updated_at")
        new_permissions = old.permissions if permissions is None else permissions
        terms = old.approvals if approvals is None else approvals
        found = OrganisationPolicy(new_permissions, principal.id, self._world.now(), terms)
        self._world.policies[principal.organisation] = found
        return found

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
        environment = (await self._reads.environment(principal, environment_id)).config
        now = self._world.now()
        session = Session(
            id=ids.new_id(ids.SESSION),
            organisation=principal.organisation,
            agent=agent,
            environment_id=environment_id,
            status=SessionStatus.IDLE,
            title=title,
            metadata=metadata,
            context=context,
            usage=Usage(input_tokens=7, requests=1, cost_microusd=12_345),
            active_seconds=1.5,
            created_at=now,
            updated_at=now,
            mode=mode,
            project_ids=self._projects.select_projects(principal, selection),
            workspace_id=selection.workspace_id,
            permissions=permissions or {},
            created_by=principal.id,
            owner_id=principal.id,
            owner_name=principal.name,
            audience=audience,
            ends_when_done=ends_when_done,
            deployment_id=deployment_id,
            backend=backend,
            environment=environment if backend is None else {**environment, "backend": backend},
        )
        self._world.sessions[session.id] = session
        self._world.log[session.id] = []
        return session, await self.send(principal, session.id, inputs)

    async def import_session(
        self, principal: Principal, transcript: TranscriptImport, **fields: Any
    ) -> tuple[Session, AcceptedInputs]:
        key = (principal.organisation, transcript.digest)
        if known := self._world.imports.get(key):
            found = self._world.sessions[known]
            return found, AcceptedInputs(organisation=principal.organisation, session_id=known)
        session, accepted = await self.create_session(principal, inputs=(), **fields)
        self._world.imports[key] = session.id
        log, entries = self._world.log[session.id], self._world.entries.setdefault(session.id, [])
        for piece in transcript.pieces:
            entries.extend(piece.entries)
            now = self._world.now()
            log.extend(Position(len(log) + n, event, now, now) for n, event in enumerate(piece.events, 1))
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
        parent = await self._reads.session(principal, session_id)
        if environment_id is not None:
            await self._reads.environment(principal, environment_id)
        log = self._world.log[session_id]
        if point.event_id is not None:
            log = log[: [row.event.id for row in log].index(point.event_id) + 1]
        elif point.position is not None:
            log = log[: point.position]
        origin = ForkedFrom(session_id, log[-1].event.id if log else None, len(log))
        fork = replace(
            change(parent),
            id=ids.new_id(ids.SESSION),
            environment_id=environment_id or parent.environment_id,
            forked_from=origin,
        )
        self._world.sessions[fork.id] = fork
        self._world.log[fork.id] = [*log]
        self._append(fork.id, events.forked(origin.session_id, origin.event_id, origin.position), processed=True)
        return fork, await self.send(principal, fork.id, inputs)

    async def update_session(
        self, principal: Principal, session_id: str, change: Callable[[Session], Session]
    ) -> tuple[Session, AcceptedInputs]:
        session = change(await self._reads.session(principal, session_id))
        self._world.sessions[session_id] = session
        notice = self._append(session_id, Event(events.SESSION_UPDATED, {"title": session.title}), processed=True)
        return session, AcceptedInputs(organisation=principal.organisation, session_id=session_id, positions=[notice])

    async def end_session(
        self, principal: Principal, session_id: str, end: SessionEnd
    ) -> tuple[Session, AcceptedInputs]:
        session = await self._reads.session(principal, session_id)
        if session.end is not None:
            check_same_end(session_id, session.end, end)
        else:
            end = replace(end, ended_at=self._world.now())
            session = replace(session, status=SessionStatus.TERMINATED, end=end)
            self._world.sessions[session_id] = session
        return session, AcceptedInputs(organisation=principal.organisation, session_id=session_id)

    async def archive_session(self, principal: Principal, session_id: str) -> tuple[Session, AcceptedInputs]:
        session = replace(await self._idle(principal, session_id), archived_at=self._world.now())
        self._world.sessions[session_id] = session
        return session, AcceptedInputs(organisation=principal.organisation, session_id=session_id)

    async def delete_session(self, principal: Principal, session_id: str) -> AcceptedInputs:
        del self._world.sessions[(await self._idle(principal, session_id)).id]
        return AcceptedInputs(organisation=principal.organisation, session_id=session_id)

    async def send(self, principal: Principal, session_id: str, inputs: Sequence[Input]) -> AcceptedInputs:
        await self._reads.session(principal, session_id)
        self._world.inputs.extend(inputs)
        positions = [
            self._append(session_id, Event(item.type, item.body), processed=item.type != events.USER_MESSAGE)
            for item in inputs
        ]
        return AcceptedInputs(
            organisation=principal.organisation, session_id=session_id, positions=positions, wake=bool(positions)
        )

    async def _idle(self, principal: Principal, session_id: str) -> Session:
        session = await self._reads.session(principal, session_id)
        if session.status is not SessionStatus.IDLE:
            raise Conflict(f"Session {session_id!r} is {session.status}.")
        return session

    def _append(self, session_id: str, event: Event, *, processed: bool) -> Position:
        now = self._world.now()
        log = self._world.log[session_id]
        log.append(Position(len(log) + 1, event, now, now if processed else None))
        return log[-1]


class FakeUnits:
    def __init__(self, world: World) -> None:
        self._world = world
        self.discarded_ids: list[int] = []

    @asynccontextmanager
    async def unit(self, principal: Principal, attempt: RequestAttempt | None) -> AsyncIterator[FakeUnit]:
        yield FakeUnit(self._world, principal, attempt)

    async def discard_response(self, response_id: int) -> None:
        self.discarded_ids.append(response_id)


class FakeNotifier:
    def __init__(self, world: World) -> None:
        self._world = world
        self.failure: Exception | None = None

    async def notify_accepted(self, accepted: AcceptedInputs) -> None:
        if self.failure is not None:
            raise self.failure
        self._world.accepted.append(accepted)


@dataclass
class FakeEventStreams:
    """Yields the given chunks, then fails or waits forever, as a stream does."""

    chunks: list[bytes] = field(default_factory=list)
    failure: Exception | None = None
    forever: Callable[[], AsyncIterator[bytes]] | None = None
    requests: list[tuple[str, str, Cursor | None, frozenset[str]]] = field(default_factory=list)
    threads: list[str | None] = field(default_factory=list)
    with_extensions: list[bool] = field(default_factory=list)
    closed: int = 0

    async def frames(
        self,
        organisation: str,
        session_id: str,
        *,
        cursor: Cursor | None,
        deltas: frozenset[str],
        thread_id: str | None = None,
        with_extensions: bool = False,
    ) -> AsyncIterator[bytes]:
        self.threads.append(thread_id)
        self.with_extensions.append(with_extensions)
        self.requests.append((organisation, session_id, cursor, deltas))
        try:
            yield b""
            for chunk in self.chunks:
                yield chunk
            if self.failure is not None:
                raise self.failure
            if self.forever is not None:
                async for chunk in self.forever():
                    yield chunk
        finally:
            self.closed += 1


@dataclass
class FakeFeeds:
    """Yields the start position, then waits if told to."""

    forever: bool = False
    viewers: list[tuple[FeedViewer, int | None]] = field(default_factory=list)

    async def frames(self, viewer: FeedViewer, *, after: int | None) -> AsyncIterator[bytes]:
        self.viewers.append((viewer, after))
        yield b'event: ping\nid: 7\ndata: {"type":"ping"}\n\n' if after is None else b""
        if self.forever:
            await asyncio.get_running_loop().create_future()


class FakeTerminals:
    """Yields these frames, then waits, and stores what was sent."""

    def __init__(self) -> None:
        self.shown: list[TerminalFrame] = []
        self.sent: list[tuple[str, TerminalInput]] = []

    async def frames(self, organisation: str, session_id: str) -> AsyncIterator[TerminalFrame | None]:
        for frame in self.shown:
            yield frame
        await asyncio.get_running_loop().create_future()

    async def send(self, organisation: str, session_id: str, terminal_id: str, sent: TerminalInput) -> None:
        self.sent.append((terminal_id, sent))


class FakeRecordings:
    """Recordings of terminals, by organisation and session."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], dict[str, bytes]] = {}

    async def list(self, organisation: str, session_id: str) -> Sequence[TerminalRecording]:
        return [
            TerminalRecording(name, session_id, len(content), datetime(2026, 1, 1, tzinfo=UTC))
            for name, content in self.stored.get((organisation, session_id), {}).items()
        ]

    async def find(self, organisation: str, session_id: str, recording_id: str) -> TerminalRecording:
        for recording in await self.list(organisation, session_id):
            if recording.id == recording_id:
                return recording
        raise NotFound("recording", recording_id)

    async def pieces(self, organisation: str, recording: TerminalRecording) -> AsyncIterator[bytes]:
        yield self.stored[organisation, recording.session_id][recording.id]


class FakeKeys:
    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.known: MutableMapping[str, Principal] = ChainMap({}, KEYS)
        """The API keys, and the secrets of browser sessions."""

    async def authenticate(self, secret: str) -> Principal:
        if self.failure is not None:
            raise self.failure
        if secret not in self.known:
            raise Unauthenticated("This API key is not known.")
        return self.known[secret]


class FakeQueues:
    async def describe(self) -> Sequence[QueueRecord]:
        return [
            QueueRecord(
                name="footplate",
                kind="activity",
                backend=None,
                backlog=3,
                oldest_seconds=1.5,
                added_per_second=0.25,
                taken_per_second=0,
                pollers=2,
            )
        ]

    async def server_version(self) -> str | None:
        return "1.32.0"


@dataclass
class FakeHealth:
    parts: dict[str, str] = field(default_factory=lambda: {"database": "ok"})
    is_ready: bool = True

    async def check(self) -> HealthReport:
        return HealthReport(self.parts, self.is_ready)


@dataclass
class FakeUsage:
    """Returns the given rows for every query."""

    lines: list[UsageRow] = field(default_factory=list)
    requests: list[tuple[Principal, UsageQuery]] = field(default_factory=list)

    async def query_usage(self, principal: Principal, query: UsageQuery) -> Sequence[UsageRow]:
        self.requests.append((principal, query))
        return self.lines[: query.limit]
