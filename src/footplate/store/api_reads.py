"""All database reads of the API.

Every query filters by organisation, so a resource of another organisation is not found. Lists contain only what the
principal can see. For a single session, `check_session_visible` decides, which the API calls for every route of a
session before anything else.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from footplate.domain.agents.agents_and_config import Agent, EnvironmentRecord
from footplate.domain.audit import AuditEntry, AuditFilter, AuditVerification
from footplate.domain.errors import NotFound
from footplate.domain.files.uploaded_files import StoredFile
from footplate.domain.json import JsonObject
from footplate.domain.organisations.members import ApiKey, Member, Team
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import ViewFilter
from footplate.domain.organisations.webhooks import DeliveryStatus, WebhookDelivery, WebhookEndpoint
from footplate.domain.pagination import Page
from footplate.domain.policy.approvals import Approval
from footplate.domain.policy.permissions import OrganisationPolicy
from footplate.domain.policy.policy_replay import CallFilter, SessionRules, StoredCall
from footplate.domain.ports.api import EventPage, SessionFilter
from footplate.domain.ports.deployment_health import WorkerRecord
from footplate.domain.ports.harness import Entry
from footplate.domain.projects.project import Project, Workspace
from footplate.domain.sessions.batches import Batch, Job, JobState
from footplate.domain.sessions.comments import Comment
from footplate.domain.sessions.deployments import Deployment, DeploymentFilter, DeploymentRun, RunFilter
from footplate.domain.sessions.events import Position
from footplate.domain.sessions.inbox import InboxCounts, InboxItem, InboxQuery
from footplate.domain.sessions.notifications import NotificationSettings, PushSubscription
from footplate.domain.sessions.session_templates import StoredSessionTemplate
from footplate.domain.sessions.steps import Playback, Step, StepState
from footplate.domain.sessions.triggers import DeliveryOutcome, Trigger, TriggerDelivery, TriggerKeys
from footplate.domain.sessions.turns import Session, SessionState, TotalUsage, Turn
from footplate.store import row_mapping
from footplate.store.archive.reader import ArchiveReader
from footplate.store.database import Database
from footplate.store.log import approval_edits_and_expiry, comments, inbox, step_changes
from footplate.store.log.fork_history import ForkHistory, LogSegment
from footplate.store.log.session_groups import batches
from footplate.store.object_store import Objects
from footplate.store.page_query import build_page_query
from footplate.store.resources import audit_trail as trail
from footplate.store.resources import (
    deployments,
    files,
    members,
    notifications,
    policies,
    policy_replay,
    projects,
    session_states,
    session_templates,
    triggers,
    webhooks,
)

T = TypeVar("T")
_ENTRIES_PER_READ: Final = 100
"""Number of conversation entries in memory at once."""


class ApiReads:
    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._objects = objects
        self._history = ForkHistory(database, ArchiveReader(database, objects))

    async def agent(self, principal: Principal, agent_id: str, version: int | None = None) -> Agent:
        if version is None:
            return await self._fetch_one(
                row_mapping.load_agent, "agent", agent_id, "agent", agent_id, principal.organisation
            )
        noun = f"version {version} of agent"
        return await self._fetch_one(
            row_mapping.load_agent, noun, agent_id, "agent_version", agent_id, principal.organisation, version
        )

    async def agents(self, principal: Principal, page: Page) -> Sequence[Agent]:
        return await self._fetch_page(row_mapping.load_agent, "agents", principal, page)

    async def agent_versions(
        self, principal: Principal, agent_id: str, *, limit: int, before_version: int | None
    ) -> Sequence[Agent]:
        await self.agent(principal, agent_id)
        rows = await self._database.fetch("agent_versions", agent_id, principal.organisation, before_version, limit)
        return [row_mapping.load_agent(row) for row in rows]

    async def environment(self, principal: Principal, environment_id: str) -> EnvironmentRecord:
        return await self._fetch_one(
            row_mapping.load_environment,
            "environment",
            environment_id,
            "environment",
            environment_id,
            principal.organisation,
        )

    async def count_workers_by_backend(self) -> Mapping[str, int]:
        rows = await self._database.fetch("workers_by_backend")
        return {row["backend"]: row["workers"] for row in rows}

    async def workers(self) -> Sequence[WorkerRecord]:
        return [row_mapping.load_worker(row) for row in await self._database.fetch("workers")]

    async def database_versions(self) -> Mapping[str, str]:
        row = await self._database.fetchrow("database_versions")
        assert row is not None
        return {**row}

    async def environments(self, principal: Principal, page: Page) -> Sequence[EnvironmentRecord]:
        return await self._fetch_page(row_mapping.load_environment, "environments", principal, page)

    async def policy(self, principal: Principal) -> OrganisationPolicy:
        """Returns the organisation's policy, which is empty if it was never set."""
        row = await self._database.fetchrow("policy", principal.organisation)
        return OrganisationPolicy({}) if row is None else policies.load_policy(row)

    async def approval(self, principal: Principal, event_id: str, *, is_question: bool = False) -> Approval:
        """Returns an approval or a question with its complete input, however large, because a person decides on it."""
        view = ViewFilter.of(principal)
        row = await self._database.fetchrow(
            "approval", event_id, principal.organisation, view.audiences, view.project_ids, is_question
        )
        if row is None:
            raise NotFound("question" if is_question else "approval", event_id)
        found = approval_edits_and_expiry.load_approval(row)
        return replace(found, body=await self._objects.load_body(row["object_key"])) if row["object_key"] else found

    async def approvals(
        self, principal: Principal, page: Page, *, session_id: str | None = None, is_question: bool = False
    ) -> Sequence[Approval]:
        where = {"s.question": is_question, **({"s.session_id": session_id} if session_id else {})}
        return await self._fetch_page(approval_edits_and_expiry.load_approval, "approvals", principal, page, where)

    async def audit(self, principal: Principal, page: Page, where: AuditFilter) -> Sequence[AuditEntry]:
        columns = {name: f"s.{name}" for name in ("kind", "session", "outcome", "tool")}
        columns["decided_by"] = "s.kind not in ('decision', 'hook') and s.principal = {}"
        columns["member"] = "{} in (s.principal, s.principal_name)"
        wanted = {columns[name]: value for name, value in asdict(where).items() if value is not None}
        return await self._fetch_page(trail.load_entry, "audit", principal, page, wanted)

    async def verify_audit(self, principal: Principal, head: str | None = None) -> AuditVerification:
        return await trail.verify_trail(self._database, principal.organisation, head)

    async def calls(
        self, principal: Principal, where: CallFilter, *, limit: int, after: tuple[datetime, str] | None
    ) -> Sequence[StoredCall]:
        return await policy_replay.load_calls(self._database, self._objects, principal, where, limit=limit, after=after)

    async def rules_by_session(self, principal: Principal, session_ids: Sequence[str]) -> Mapping[str, SessionRules]:
        return await policy_replay.load_session_rules(self._database, principal, session_ids)

    async def rules_of_new_session(
        self, principal: Principal, agent: JsonObject, project_ids: Sequence[str]
    ) -> SessionRules:
        return await policy_replay.load_new_session_rules(self._database, principal, agent, project_ids)

    async def project(self, principal: Principal, project_id: str) -> Project:
        if principal.project_ids is not None and project_id not in principal.project_ids:
            raise NotFound("project", project_id)
        return await self._fetch_one(
            projects.load_project, "project", project_id, "project", project_id, principal.organisation
        )

    async def projects(self, principal: Principal, page: Page, *, path: str | None = None) -> Sequence[Project]:
        return await self._fetch_page(
            projects.load_project, "projects", principal, page, {"s.path": path} if path else {}
        )

    async def member(self, principal: Principal, member_id: str) -> Member:
        return await self._fetch_one(
            members.load_member, "member", member_id, "member", member_id, principal.organisation
        )

    async def members(self, principal: Principal, page: Page) -> Sequence[Member]:
        return await self._fetch_page(members.load_member, "members", principal, page)

    async def team(self, principal: Principal, team_id: str) -> Team:
        return await self._fetch_one(members.load_team, "team", team_id, "team", team_id, principal.organisation)

    async def teams(self, principal: Principal, page: Page) -> Sequence[Team]:
        return await self._fetch_page(members.load_team, "teams", principal, page)

    async def api_key(self, principal: Principal, key_id: str) -> ApiKey:
        return await self._fetch_one(members.load_key, "API key", key_id, "api_key", key_id, principal.organisation)

    async def api_keys(self, principal: Principal, page: Page) -> Sequence[ApiKey]:
        return await self._fetch_page(members.load_key, "api_keys", principal, page)

    async def webhook_endpoint(self, principal: Principal, endpoint_id: str) -> WebhookEndpoint:
        audiences = ViewFilter.of(principal).audiences
        return await self._fetch_one(
            *(webhooks.load_endpoint, "webhook endpoint", endpoint_id, "webhook_endpoint"),
            *(endpoint_id, principal.organisation, audiences),
        )

    async def webhook_endpoints(
        self, principal: Principal, page: Page, *, session_id: str | None = None
    ) -> Sequence[WebhookEndpoint]:
        where = {"s.session_id": session_id} if session_id else {}
        return await self._fetch_page(webhooks.load_endpoint, "webhook_endpoints", principal, page, where)

    async def webhook_delivery(self, principal: Principal, endpoint_id: str, delivery_id: str) -> WebhookDelivery:
        await self.webhook_endpoint(principal, endpoint_id)
        return await self._fetch_one(
            *(webhooks.load_delivery, "delivery", delivery_id, "webhook_delivery"),
            *(delivery_id, endpoint_id, principal.organisation),
        )

    async def webhook_deliveries(
        self, principal: Principal, endpoint_id: str, page: Page, *, status: DeliveryStatus | None = None
    ) -> Sequence[WebhookDelivery]:
        await self.webhook_endpoint(principal, endpoint_id)
        where = {"s.endpoint_id": endpoint_id, **({"s.status": status.value} if status else {})}
        return await self._fetch_page(webhooks.load_delivery, "webhook_deliveries", principal, page, where)

    async def notification_settings(self, principal: Principal) -> NotificationSettings:
        return await notifications.read_settings(self._database, principal)

    async def push_subscriptions(self, principal: Principal) -> Sequence[PushSubscription]:
        return await notifications.list_subscriptions(self._database, principal)

    async def workspace(self, principal: Principal, workspace_id: str) -> Workspace:
        return await self._fetch_one(
            projects.load_workspace, "workspace", workspace_id, "workspace", workspace_id, principal.organisation
        )

    async def workspaces(self, principal: Principal, page: Page) -> Sequence[Workspace]:
        return await self._fetch_page(projects.load_workspace, "workspaces", principal, page)

    async def file(self, principal: Principal, file_id: str) -> StoredFile:
        return await self._fetch_one(
            files.load_file, "file", file_id, "file", file_id, principal.organisation, *files.view_arguments(principal)
        )

    async def files(
        self, principal: Principal, page: Page, *, ids: Sequence[str] | None = None, session_id: str | None = None
    ) -> Sequence[StoredFile]:
        if ids is None:
            where = {} if session_id is None else {"s.session_id": session_id}
            return await self._fetch_page(files.load_file, "files", principal, page, where)
        rows = await self._database.fetch("files_of", [*ids], principal.organisation, *files.view_arguments(principal))
        found = [files.load_file(row) for row in rows]
        return [file for file in found if session_id in {None, file.session_id}]

    async def omitted_outputs(self, principal: Principal, session_id: str) -> Sequence[str]:
        view = ViewFilter.of(principal)
        row = await self._database.fetchrow(
            "omitted_outputs", session_id, principal.organisation, view.audiences, view.project_ids
        )
        return [] if row is None else row["omitted"] or []

    async def session(self, principal: Principal, session_id: str) -> Session:
        return await self._fetch_one(
            row_mapping.load_session, "session", session_id, "session", session_id, principal.organisation
        )

    async def total_usage(self, principal: Principal, session_id: str) -> TotalUsage:
        row = await self._database.fetchrow("total_usage", session_id, principal.organisation)
        if row is None or not row["sessions"]:
            raise NotFound("session", session_id)
        return TotalUsage(row["sessions"], row_mapping.load_usage(row))

    async def check_session_visible(self, principal: Principal, session_id: str) -> None:
        if not await self.find_visible_sessions(principal, [session_id]):
            raise NotFound("session", session_id)

    async def find_visible_sessions(self, principal: Principal, session_ids: Sequence[str]) -> frozenset[str]:
        view = ViewFilter.of(principal)
        rows = await self._database.fetch(
            "visible_sessions", [*session_ids], principal.organisation, view.audiences, view.project_ids
        )
        return frozenset(row["id"] for row in rows)

    async def sessions(self, principal: Principal, page: Page, where: SessionFilter) -> Sequence[Session]:
        return await self._fetch_page(
            row_mapping.load_session, "sessions", principal, page, session_states.build_filters(principal, where)
        )

    async def count_sessions(
        self, principal: Principal, page: Page, where: SessionFilter
    ) -> Mapping[SessionState, int]:
        return await session_states.count_states(self._database, principal, page, where)

    async def find_pinned_sessions(self, principal: Principal, session_ids: Sequence[str]) -> frozenset[str]:
        return await session_templates.find_pinned_sessions(self._database, principal, session_ids)

    async def inbox(self, principal: Principal, query: InboxQuery) -> Sequence[InboxItem]:
        return await inbox.read_page(self._database, self._objects, principal, query)

    async def inbox_item(self, principal: Principal, item_id: str) -> InboxItem:
        return await inbox.read_item(self._database, self._objects, principal, item_id)

    async def inbox_counts(self, principal: Principal) -> InboxCounts:
        return await inbox.count_items(self._database, principal)

    async def comment(self, principal: Principal, session_id: str, comment_id: str) -> Comment:
        return await comments.read_comment(self._database, principal, session_id, comment_id)

    async def comments(
        self,
        principal: Principal,
        session_id: str,
        *,
        limit: int,
        after: tuple[datetime, str] | None,
        is_sent: bool | None = None,
    ) -> Sequence[Comment]:
        return await comments.read_comments(
            self._database, principal, session_id, limit=limit, after=after, is_sent=is_sent
        )

    async def session_template(self, principal: Principal, template_id: str) -> StoredSessionTemplate:
        return await session_templates.read_template(self._database, principal, template_id)

    async def session_templates(self, principal: Principal, page: Page) -> Sequence[StoredSessionTemplate]:
        return await self._fetch_page(session_templates.load_template, "session_templates", principal, page)

    async def events(self, principal: Principal, session_id: str, page: EventPage) -> Sequence[Position]:
        organisation = principal.organisation
        rows = await self._history.read_page_rows(organisation, session_id, page)
        # Read after the rows: if the session is not archived now, it was not archived while the rows were read.
        head = await self._fetch_head(principal, session_id)
        if page.order == "asc" and (page.after_seq or 0) >= max(head["archived"] or 0, head["inherited"]):
            return [row_mapping.load_position(row) for row in rows]
        if head["inherited"]:
            return await self._history.read_page(organisation, session_id, page)
        if head["archived"] is not None:
            return await self._history.read_archived_page(organisation, LogSegment(session_id), page)
        return [row_mapping.load_position(row) for row in rows]

    async def conversation(self, principal: Principal, session_id: str) -> AsyncIterator[Entry]:
        """Yields the entries that exist at the start. Entries are only ever appended, so the result is consistent."""
        head = await self._database.fetchrow("conversation_length", session_id, principal.organisation)
        if head is None:
            raise NotFound("session", session_id)
        for after in range(0, head["entries"], _ENTRIES_PER_READ):
            before = min(after + _ENTRIES_PER_READ, head["entries"])
            for row in await self._history.read_entries(session_id, after, before):
                body = await self._objects.load_body(row["object_key"]) if row["object_key"] else row["body"]
                yield Entry(row["kind"], body)

    async def turn(self, principal: Principal, session_id: str, turn_id: str) -> Turn:
        await self._fetch_head(principal, session_id)
        return await self._fetch_one(
            row_mapping.load_turn, "turn", turn_id, "turn", session_id, principal.organisation, turn_id
        )

    async def step(self, principal: Principal, session_id: str, step_id: str) -> Step:
        for step in await step_changes.read_steps(self._database, principal, session_id, step_id=step_id):
            return step
        raise NotFound("step", step_id)

    async def steps(
        self, principal: Principal, session_id: str, *, states: Sequence[StepState], limit: int, after: int | None
    ) -> Sequence[Step]:
        return await step_changes.read_steps(
            self._database, principal, session_id, states=states, limit=limit, after=after
        )

    async def batch(self, principal: Principal, batch_id: str) -> Batch:
        return await batches.load_batch(self._database, principal, batch_id)

    async def batches(self, principal: Principal, page: Page) -> Sequence[Batch]:
        return await self._fetch_page(batches.make_batch, "batches", principal, page, {"s.kind": "batch"})

    async def deployment(self, principal: Principal, deployment_id: str) -> Deployment:
        return await deployments.read_deployment(self._database, principal, deployment_id)

    async def deployments(self, principal: Principal, page: Page, where: DeploymentFilter) -> Sequence[Deployment]:
        return await deployments.read_deployments(self._database, principal, page, where)

    async def deployment_run(self, principal: Principal, run_id: str) -> DeploymentRun:
        return await deployments.read_run(self._database, principal, run_id)

    async def deployment_runs(self, principal: Principal, page: Page, where: RunFilter) -> Sequence[DeploymentRun]:
        return await deployments.read_runs(self._database, principal, page, where)

    async def trigger(self, principal: Principal, trigger_id: str) -> Trigger:
        return await triggers.read_trigger(self._database, principal, trigger_id)

    async def triggers(self, principal: Principal, page: Page) -> Sequence[Trigger]:
        return await triggers.read_triggers(self._database, principal, page)

    async def trigger_deliveries(
        self, principal: Principal, trigger_id: str, page: Page, *, outcome: DeliveryOutcome | None = None
    ) -> Sequence[TriggerDelivery]:
        return await triggers.read_deliveries(self._database, principal, trigger_id, page, outcome)

    async def trigger_keys(self, trigger_id: str) -> TriggerKeys | None:
        return await triggers.read_keys(self._database, trigger_id)

    async def jobs(
        self,
        principal: Principal,
        batch_id: str,
        *,
        states: Sequence[JobState] = (),
        custom_id: str | None = None,
        limit: int,
        after: int | None,
    ) -> Sequence[Job]:
        start = -1 if after is None else after
        return await batches.read_jobs(
            self._database, principal, batch_id, states=states, custom_id=custom_id, limit=limit, after=start
        )

    async def job_results(
        self, principal: Principal, batch_id: str, *, states: Sequence[JobState] = (), limit: int, after: int
    ) -> Sequence[Job]:
        return await batches.read_jobs(
            self._database, principal, batch_id, states=states, limit=limit, after=after, in_order_of_ending=True
        )

    async def playback(self, principal: Principal, session_id: str) -> Playback:
        return await step_changes.read_playback(self._database, principal, session_id)

    async def turns(self, principal: Principal, session_id: str, *, limit: int, before: str | None) -> Sequence[Turn]:
        await self._fetch_head(principal, session_id)
        rows = await self._database.fetch("turns", session_id, principal.organisation, before, limit)
        return [row_mapping.load_turn(row) for row in rows]

    async def positions(self, organisation: str, session_id: str, after_seq: int, limit: int) -> Sequence[Position]:
        """Returns log positions for the live stream, including the second positions of queued inputs."""
        rows = await self._database.fetch("positions", session_id, organisation, after_seq, limit, None)
        if not _is_complete(rows, after_seq):
            head = await self._database.fetchrow("head_seq", session_id, organisation)
            if head is not None and after_seq < max(head["archived"] or 0, head["inherited"]):
                return await self._history.read_positions(organisation, session_id, after_seq, limit)
        return [row_mapping.load_position(row) for row in rows]

    async def heads(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        """Returns the last position of each session that still exists, for the live stream."""
        rows = await self._database.fetch("heads", list(session_ids))
        return {row["session_id"]: row["seq"] for row in rows}

    async def _fetch_head(self, principal: Principal, session_id: str) -> row_mapping.Row:
        row = await self._database.fetchrow("head_seq", session_id, principal.organisation)
        if row is None:
            raise NotFound("session", session_id)
        return row

    async def _fetch_one(
        self, make: Callable[[row_mapping.Row], T], noun: str, item_id: str, query: str, *args: Any
    ) -> T:
        row = await self._database.fetchrow(query, *args)
        if row is None:
            raise NotFound(noun, item_id)
        return make(row)

    async def _fetch_page(
        self,
        make: Callable[[row_mapping.Row], T],
        table: str,
        principal: Principal,
        page: Page,
        filters: Mapping[str, Any] | None = None,
    ) -> Sequence[T]:
        sql, args = build_page_query(table, principal, page, filters or {})
        async with self._database.connection() as connection:
            rows = await connection.fetch(sql, *args)
        values = [make(row) for row in rows]
        return values if page.before is None else values[::-1]


def _is_complete(rows: Sequence[row_mapping.Row], after_seq: int) -> bool:
    """Returns whether the rows are complete: no position was archived or belongs to another session. Rows are removed
    from the first on, so all rows after an existing one exist too, except the rows that they refer to.
    """
    return bool(rows) and rows[0]["seq"] == after_seq + 1 and all(row["body"] is not None for row in rows)
