"""Wire models of sessions: create and update requests, list filters, and the response."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from footplate.api.wire.agent.agents import AgentOverrides
from footplate.api.wire.agent.mcp_servers import McpServers, check_toolsets, normalise_servers
from footplate.api.wire.agent.multiagent import AgentReference, union_tag
from footplate.api.wire.agent.server_toolsets import (
    ServerToolsets,
    check_distinct_from_servers,
    normalise_toolsets,
)
from footplate.api.wire.agent.tools import Tools, normalise_tools
from footplate.api.wire.files_and_resources import FileResources
from footplate.api.wire.policy.permissions import OwnPermissions, dump_permissions
from footplate.api.wire.policy.permissions import serialize_permissions as shown_rules
from footplate.api.wire.projects import OrderedIds
from footplate.api.wire.request_base import (
    NOT_NULLABLE,
    Body,
    Context,
    Id,
    Metadata,
    MetadataPatch,
    Parameters,
    Text,
    Unsupported,
    UnsupportedList,
    UtcTime,
    Version,
    merge_metadata,
    optional_timestamp,
    timestamp,
)
from footplate.api.wire.session.events import MAX_INITIAL_EVENTS, UserMessage
from footplate.api.wire.visibility import TeamId, VisibilityName, parse_audience, serialize_audience
from footplate.domain.agents.agents_and_config import fill_default_policies, keep_stored_tools
from footplate.domain.agents.environment_config import BackendName
from footplate.domain.agents.mcp_servers import SERVER_TOOLSETS
from footplate.domain.json import Json, JsonObject
from footplate.domain.pagination import Order, Page
from footplate.domain.ports.api import SessionFilter
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.turns import Session, SessionState, SessionStatus, TotalUsage
from footplate.domain.text.search_tokens import parse_search

_MICRO_PER_CENT: Final = 10_000

Status = Literal["idle", "running", "rescheduling", "terminated"]
Title = Annotated[Text, StringConstraints(max_length=2000)]


class AgentWithOverrides(AgentOverrides):
    type: Literal["agent_with_overrides"]
    id: Id
    version: Version | None = None


AgentChoice = Annotated[
    Annotated[Id, Tag("id")]
    | Annotated[AgentReference, Tag("agent")]
    | Annotated[AgentWithOverrides, Tag("agent_with_overrides")],
    Discriminator(union_tag),
]
InitialEvent = Annotated[UserMessage, Field(description="Only `user.message` is accepted as an initial event.")]


class SessionCreate(Body):
    agent: AgentChoice
    environment_id: Id
    backend: Annotated[
        BackendName | None, Field(description="Where commands run. Default: the environment's backend.")
    ] = None
    title: Title | None = None
    metadata: Metadata = Field(default_factory=dict)
    context: Context | None = None
    mode: Annotated[
        Literal["interactive", "background"], Field(description="`background`: streams send no previews.")
    ] = "interactive"
    project_ids: OrderedIds | None = None
    workspace_id: Annotated[
        Id | None, Field(description="Alternative to project_ids: the current projects of a workspace.")
    ] = None
    initial_events: Annotated[list[InitialEvent], Field(max_length=MAX_INITIAL_EVENTS, default_factory=list)]
    permissions: OwnPermissions | None = None
    visibility: VisibilityName = "organisation"
    team_id: TeamId = None
    ends_when_done: Annotated[
        bool, Field(description="The session ends by itself when its queue is empty, and accepts nothing more.")
    ] = False
    resources: FileResources | None = None
    vault_ids: UnsupportedList = None
    budget: Unsupported = None


class SessionEndRequest(Body):
    outcome: Literal["completed", "failed", "cancelled"] = "completed"
    reason: Annotated[Text, StringConstraints(max_length=2000)] | None = None

    def to_end(self, ended_by: str) -> SessionEnd:
        return SessionEnd(outcome=EndOutcome(self.outcome), reason=self.reason, ended_by=ended_by)


class SessionAgentUpdate(Body):
    """Fields that can change in a session's copy of its agent. A list replaces the previous list completely."""

    tools: Tools = NOT_NULLABLE
    mcp_servers: McpServers | None = None
    server_toolsets: ServerToolsets | None = None


class SessionUpdate(Body):
    title: Title | None = None
    metadata: MetadataPatch | None = None
    agent: SessionAgentUpdate = NOT_NULLABLE
    permissions: OwnPermissions | None = None
    visibility: VisibilityName = NOT_NULLABLE
    team_id: TeamId = None
    owner_id: Annotated[Id, Field(description="The member who owns the session from now on.")] = NOT_NULLABLE
    vault_ids: UnsupportedList = None
    budget: Unsupported = None


def make_session_update(body: SessionUpdate) -> Callable[[Session], Session]:
    def change(session: Session) -> Session:
        metadata = session.metadata
        if "metadata" in body.model_fields_set:
            metadata = merge_metadata(session.metadata, body.metadata) if body.metadata is not None else {}
        title = body.title if "title" in body.model_fields_set else session.title
        agent = _update_agent_copy(session.agent, body.agent) if "agent" in body.model_fields_set else session.agent
        rules = dump_permissions(body.permissions) if "permissions" in body.model_fields_set else session.permissions
        changed = replace(session, title=title, metadata=metadata, agent=agent, permissions=rules)
        if {"visibility", "team_id"} & body.model_fields_set:
            name = body.visibility if "visibility" in body.model_fields_set else session.audience.visibility
            changed = replace(changed, audience=parse_audience(name, body.team_id))
        return replace(changed, owner_id=body.owner_id) if "owner_id" in body.model_fields_set else changed

    return change


def _update_agent_copy(agent: JsonObject, update: SessionAgentUpdate) -> JsonObject:
    changed = {**agent}
    if "tools" in update.model_fields_set:
        changed["tools"] = keep_stored_tools(normalise_tools(update.tools), agent.get("tools"))
    if "mcp_servers" in update.model_fields_set:
        changed["mcp_servers"] = normalise_servers(update.mcp_servers)
    if SERVER_TOOLSETS in update.model_fields_set:
        changed.pop(SERVER_TOOLSETS, None)
        if toolsets := normalise_toolsets(update.server_toolsets):
            changed[SERVER_TOOLSETS] = toolsets
    check_toolsets(changed.get("mcp_servers"), changed.get("tools"), where="agent.")
    check_distinct_from_servers(changed.get("mcp_servers"), changed.get(SERVER_TOOLSETS), where="agent.")
    return changed


class SessionParameters(Parameters):
    """Filters of sessions."""

    agent_id: Text | None = None
    agent_version: Version | None = None
    statuses: Annotated[list[Status], Field(alias="statuses[]", default_factory=list)]
    include_archived: bool = False
    parent_id: Annotated[Text | None, Field(description="Only the children of this session.")] = None
    group_id: Annotated[Text | None, Field(description="Only the sessions that were started together.")] = None
    forked_from: Annotated[Text | None, Field(description="Only the forks of this session.")] = None
    created_at_gt: Annotated[UtcTime | None, Field(alias="created_at[gt]")] = None
    created_at_gte: Annotated[UtcTime | None, Field(alias="created_at[gte]")] = None
    created_at_lt: Annotated[UtcTime | None, Field(alias="created_at[lt]")] = None
    created_at_lte: Annotated[UtcTime | None, Field(alias="created_at[lte]")] = None
    deployment_id: Annotated[Text | None, Field(description="Only the sessions of this deployment's runs.")] = None
    pinned: Annotated[bool | None, Field(description="Only the sessions that you have pinned, or the others.")] = None
    states: Annotated[
        list[SessionState],
        Field(alias="state[]", default_factory=list, description="Only sessions in this state. May be repeated."),
    ]
    project_id: Annotated[Text | None, Field(description="Only sessions that work on this project.")] = None
    owner_id: Annotated[Text | None, Field(description="Only sessions of this member.")] = None
    harness: Annotated[Text | None, Field(description="Only sessions whose agent runs on this harness.")] = None
    stuck: Annotated[
        bool,
        Field(
            description="Only sessions that have work and do not move: they are stalled, or have waited for a worker "
            "for more than a minute. `activity.message` says why."
        ),
    ] = False
    q: Annotated[
        Text | None,
        StringConstraints(max_length=500),
        Field(
            description="Only sessions whose title, messages or paths of written files contain all these words. "
            'Words in `"` must be complete and in one place; of others, the beginning is enough.'
        ),
    ] = None
    memory_store_id: Unsupported = None

    def to_filter(self, *, default_harness: str | None) -> SessionFilter:
        return SessionFilter(
            agent_id=self.agent_id,
            agent_version=self.agent_version if self.agent_id else None,
            statuses=[SessionStatus(status) for status in self.statuses],
            parent_id=self.parent_id,
            group_id=self.group_id,
            forked_from=self.forked_from,
            deployment_id=self.deployment_id,
            is_pinned=self.pinned,
            states=self.states,
            project_id=self.project_id,
            owner_id=self.owner_id,
            harness=self.harness,
            is_stuck=self.stuck,
            terms=None if self.q is None else parse_search(self.q),
            is_default_harness=self.harness is not None and self.harness == default_harness,
        )

    def to_page(self, *, limit: int, order: Order = "desc") -> Page:
        return Page(
            limit=limit,
            order=order,
            created_gt=self.created_at_gt,
            created_gte=self.created_at_gte,
            created_lt=self.created_at_lt,
            created_lte=self.created_at_lte,
            include_archived=self.include_archived,
        )


class ListSessions(SessionParameters):
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] | None = None
    page: Text | None = None


def serialize_session_counts(counts: Mapping[SessionState, int]) -> JsonObject:
    return {
        "type": "session_counts",
        "total": sum(counts.values()),
        "states": {state.value: counts[state] for state in SessionState},
    }


def serialize_session(session: Session) -> JsonObject:
    return {
        "id": session.id,
        "type": "session",
        "agent": fill_default_policies(session.agent),
        "environment_id": session.environment_id,
        "backend": session.backend,
        "status": session.status.value,
        "state": session.state.value,
        "activity": {
            "state": session.activity.state.value,
            "reason": session.activity.reason,
            "message": session.activity_message,
            "since": optional_timestamp(session.activity_since),
        },
        "title": session.title,
        "metadata": {**session.metadata},
        "context": session.context,
        "resources": [*session.resources],
        "vault_ids": [],
        "outcome_evaluations": [],
        "budget": None,
        "deployment_id": session.deployment_id,
        "stats": serialize_stats(session),
        "usage": {**serialize_token_usage(session.usage), "active_seconds": session.active_seconds},
        "interactions": session.usage.requests,
        "last_interaction_at": optional_timestamp(session.last_interaction_at),
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
        "archived_at": optional_timestamp(session.archived_at),
        "mode": session.mode.value,
        "forked_from": {**asdict(session.forked_from)} if session.forked_from else None,
        "project_ids": [*session.project_ids],
        "projects": [{"id": each, "name": session.project_names.get(each)} for each in session.project_ids],
        "workspace_id": session.workspace_id,
        "bases": {**session.bases},
        "permissions": shown_rules(session.permissions),
        "created_by": session.created_by,
        "owner": {"id": session.owner_id, "name": session.owner_name},
        "conversation_id": session.conversation_id,
        "parent_id": session.parent_id,
        "group_id": session.group_id,
        **serialize_audience(session.audience),
        "ends_when_done": session.ends_when_done,
        "end": _serialize_end(session.end),
    }


def _serialize_end(end: SessionEnd | None) -> JsonObject | None:
    if end is None:
        return None
    return {
        "outcome": end.outcome.value,
        "reason": end.reason,
        "ended_by": end.ended_by,
        "ended_at": optional_timestamp(end.ended_at),
    }


def serialize_stats(session: Session) -> JsonObject:
    return {"active_seconds": session.active_seconds, "duration_seconds": _duration(session)}


def _duration(session: Session) -> float:
    end = (session.end.ended_at if session.end else None) or datetime.now(UTC)
    return max(0.0, round((end - session.created_at).total_seconds(), 3))


def serialize_total_usage(session_id: str, total: TotalUsage) -> JsonObject:
    return {
        "type": "session_usage",
        "session_id": session_id,
        "sessions": total.sessions,
        "usage": serialize_token_usage(total.usage),
    }


def serialize_tool_calls(calls: int, failed: int, seconds: float) -> JsonObject:
    return {
        "calls": calls,
        "failed": failed,
        "success_rate": round((calls - failed) / calls, 4) if calls else None,
        "seconds": round(seconds, 3),
        "average_seconds": round(seconds / calls, 4) if calls else None,
    }


def serialize_token_usage(total: Usage) -> JsonObject:
    """Returns token counts in the reference API's fields. An unknown cost is omitted, because unknown does not mean
    free.
    """
    tokens: JsonObject = {
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "cache_read_input_tokens": total.cache_read_tokens,
        "cache_creation": {"ephemeral_5m_input_tokens": total.cache_write_tokens, "ephemeral_1h_input_tokens": 0},
        "requests": total.requests,
    }
    return tokens if total.cost_microusd is None else {**tokens, **_serialize_cost(total.cost_microusd)}


def _serialize_cost(microusd: int) -> dict[str, Json]:
    """Returns the cost in whole cents, rounded up, in the reference API's field, and exactly in Footplate's own
    field.
    """
    cents = -(-microusd // _MICRO_PER_CENT)
    return {"list_cost": {"amount": str(cents), "currency": "USD"}, "cost_microusd": microusd}
