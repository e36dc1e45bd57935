"""Wire models of agents: request bodies, session and turn overrides, the stored definition, and the response."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, JsonValue, StringConstraints, Tag

from footplate.api.wire.agent.mcp_servers import McpServers, check_toolsets, normalise_servers
from footplate.api.wire.agent.multiagent import Multiagent, build_stored_references
from footplate.api.wire.agent.multiagent import check_definition as check_subagents
from footplate.api.wire.agent.server_toolsets import (
    ServerToolsets,
    check_distinct_from_servers,
    normalise_toolsets,
)
from footplate.api.wire.agent.tools import Tools, normalise_tools
from footplate.api.wire.policy.permissions import OwnPermissions
from footplate.api.wire.request_base import (
    NOT_NULLABLE,
    Body,
    Metadata,
    MetadataPatch,
    Name,
    Unsupported,
    UnsupportedList,
    Version,
    merge_metadata,
    optional_timestamp,
    timestamp,
)
from footplate.domain.agents.agents_and_config import Agent, fill_default_policies, keep_stored_tools
from footplate.domain.agents.environment_config import ShellMode
from footplate.domain.agents.mcp_servers import SERVER_TOOLSETS
from footplate.domain.agents.model_connections import ANTHROPIC, OPENAI, ModelConnection, parse_model_name
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject

EXTENSION_FIELDS: Final = (
    "harness",
    "role",
    "goal",
    "backstory",
    "limits",
    "model_parameters",
    "permissions",
    SERVER_TOOLSETS,
    "shell_mode",
)
"""Footplate's own fields. They appear in a definition only if they were set."""

ModelName = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Prompt = Annotated[str, StringConstraints(max_length=100_000)]
Persona = Annotated[str, StringConstraints(max_length=10_000)]


class ModelConfig(Body):
    """A model by name: `connection/model`, `provider:model`, or a name that starts with `claude-`."""

    id: ModelName
    speed: Literal["standard"] | None = None
    effort: Unsupported = None
    inference_geo: Unsupported = None


ShellModeName = Annotated[
    ShellMode | None,
    Field(description="Where commands run: on the worker's `host` or in a `container`. Default: as the backend does."),
]


def _model_tag(value: object) -> str:
    return "string" if isinstance(value, str) else "object"


Model = Annotated[
    Annotated[ModelName, Tag("string")] | Annotated[ModelConfig, Tag("object")], Discriminator(_model_tag)
]


class Limits(Body):
    max_iterations: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_retries: Annotated[
        int | None, Field(ge=0, le=100, description="How often a turn is retried after a temporary failure.")
    ] = None
    retry_delay_seconds: Annotated[
        float | None,
        Field(ge=0, le=3600, description="Wait before the first of these retries. Each further wait is twice as long."),
    ] = None
    timeout_seconds: Annotated[
        float | None,
        Field(
            gt=0, le=604_800, description="Maximum duration of a turn. A longer turn ends with the status `timed_out`."
        ),
    ] = None


class ExecutionIdentity(Body):
    type: Literal["service_account"]


class AgentExtensions(Body):
    harness: Name | None = None
    role: Persona | None = None
    goal: Persona | None = None
    backstory: Prompt | None = None
    limits: Limits | None = None
    model_parameters: dict[str, JsonValue] | None = None
    server_toolsets: ServerToolsets | None = None
    shell_mode: ShellModeName = None


class AgentCreate(AgentExtensions):
    name: Name
    model: Model
    description: Annotated[str, StringConstraints(max_length=2048)] | None = None
    system: Prompt | None = None
    tools: Tools | None = None
    metadata: Metadata = Field(default_factory=dict)
    execution_identity: ExecutionIdentity | None = None
    mcp_servers: McpServers | None = None
    permissions: OwnPermissions | None = None
    skills: UnsupportedList = None
    multiagent: Multiagent | None = None


class AgentUpdate(AgentExtensions):
    """An omitted field keeps its value, and null clears it. Lists are replaced; metadata is merged by key."""

    version: Version | None = None
    name: Name = NOT_NULLABLE
    model: Model = NOT_NULLABLE
    description: Annotated[str, StringConstraints(max_length=2048)] | None = None
    system: Prompt | None = None
    tools: Tools | None = None
    metadata: MetadataPatch | None = None
    execution_identity: ExecutionIdentity | None = None
    mcp_servers: McpServers | None = None
    permissions: OwnPermissions | None = None
    skills: UnsupportedList = None
    multiagent: Multiagent | None = None


class AgentOverrides(AgentExtensions):
    """Fields that a session can override in its copy of the agent."""

    model: Model = NOT_NULLABLE
    system: Prompt | None = None
    tools: Tools | None = None
    mcp_servers: McpServers | None = None
    skills: UnsupportedList = None


class TurnOverrides(Body):
    """Fields that can be overridden for one turn."""

    model: Model = NOT_NULLABLE
    system: Prompt | None = None
    limits: Limits | None = None
    model_parameters: dict[str, JsonValue] | None = None
    shell_mode: ShellModeName = None


def normalise_definition_fields(body: AgentCreate | AgentUpdate | AgentOverrides | TurnOverrides) -> JsonObject:
    """Returns the normalised definition fields that this body sets. Null stays null in Footplate's own fields."""
    sent = body.model_fields_set
    fields: JsonObject = {}
    for name in ("description", "system", *EXTENSION_FIELDS):
        if name in sent:
            fields[name] = _to_json(getattr(body, name))
    if "model" in sent:
        fields["model"] = normalise_model(body.model)
    if "tools" in sent:
        fields["tools"] = normalise_tools(getattr(body, "tools", None))
    if "mcp_servers" in sent:
        fields["mcp_servers"] = normalise_servers(getattr(body, "mcp_servers", None))
    if SERVER_TOOLSETS in sent:
        fields[SERVER_TOOLSETS] = normalise_toolsets(getattr(body, SERVER_TOOLSETS, None))
    return fields


def normalise_model(model: str | ModelConfig) -> JsonObject:
    return {"id": model if isinstance(model, str) else model.id, "speed": "standard"}


def _to_json(value: Any) -> Json:
    plain: Json = value.model_dump(exclude_none=True) if isinstance(value, Body) else value
    return plain


def build_definition(body: AgentCreate, multiagent: JsonObject | None) -> JsonObject:
    """Builds a complete definition for storage and responses. `multiagent` has its agents already resolved to
    versions.
    """
    defaults: JsonObject = {
        "description": None,
        "model": {},
        "system": None,
        "tools": [],
        "mcp_servers": [],
        "skills": [],
        "multiagent": multiagent,
        "execution_identity": {"type": "service_account"},
    }
    return check_definition(merge_definition(defaults, normalise_definition_fields(body)))


def merge_definition(definition: JsonObject, fields: JsonObject) -> JsonObject:
    """Merges `fields` over `definition`. An empty description or system prompt becomes null, and Footplate's own fields
    are removed if null.
    """
    merged = {**definition, **fields}
    for name in ("description", "system"):
        merged[name] = merged[name] or None
    return {name: value for name, value in merged.items() if value is not None or name not in EXTENSION_FIELDS}


def check_definition(definition: JsonObject, *, where: str = "") -> JsonObject:
    """Raises `InvalidRequest` if parts of a definition contradict each other. Applies to merged definitions too."""
    check_toolsets(definition.get("mcp_servers"), definition.get("tools"), where=where)
    check_distinct_from_servers(definition.get("mcp_servers"), definition.get(SERVER_TOOLSETS), where=where)
    return definition


def make_agent_update(
    body: AgentUpdate, members: Sequence[Agent] | None, *, default_harness: str
) -> Callable[[Agent], Agent]:
    """Returns the function that applies the update. `members`: the agents of the new `multiagent`."""
    fields = normalise_definition_fields(body)
    if "multiagent" in body.model_fields_set:
        fields["multiagent"] = build_stored_references(members)

    def change(agent: Agent) -> Agent:
        new_fields = {**fields}
        if "tools" in new_fields:
            new_fields["tools"] = keep_stored_tools(new_fields["tools"], agent.definition.get("tools"))
        metadata = agent.metadata
        if "metadata" in body.model_fields_set:
            metadata = merge_metadata(agent.metadata, body.metadata) if body.metadata is not None else {}
        definition = check_definition(merge_definition(agent.definition, new_fields))
        check_subagents(definition, members, default_harness)
        return replace(
            agent,
            name=body.name if "name" in body.model_fields_set else agent.name,
            definition=definition,
            metadata=metadata,
        )

    return change


def snapshot_agent(agent: Agent, overrides: JsonObject) -> JsonObject:
    """Returns the agent as a session stores it."""
    return {
        "id": agent.id,
        "type": "agent",
        "version": agent.version,
        "name": agent.name,
        **check_definition(merge_definition(agent.definition, overrides), where="agent."),
    }


def serialize_agent(agent: Agent) -> JsonObject:
    return {
        "id": agent.id,
        "type": "agent",
        "version": agent.version,
        "name": agent.name,
        **fill_default_policies(agent.definition),
        "metadata": {**agent.metadata},
        "created_at": timestamp(agent.created_at),
        "updated_at": timestamp(agent.updated_at),
        "archived_at": optional_timestamp(agent.archived_at),
    }


def check_model(model: str | ModelConfig, connections: Mapping[str, ModelConnection], *, where: str = "") -> None:
    """Refuses a model of an unknown connection. A worker checks the names of providers, whose keys only it knows."""
    name = model if isinstance(model, str) else model.id
    parsed = parse_model_name(name)
    if parsed is None or parsed.provider is not None or parsed.connection in {ANTHROPIC, OPENAI, *connections}:
        return
    raise InvalidRequest(
        f"{where}model: the organisation has no connection {parsed.connection!r}",
        field=f"{where}model",
        help_text=f"Connections: {', '.join(sorted(connections)) or 'none'}. `footplate models` lists their models.",
    )


def check_harness(body: AgentExtensions, known: frozenset[str], *, where: str = "") -> None:
    if body.harness is not None and body.harness not in known:
        raise InvalidRequest(
            f"{where}harness: this server has no harness {body.harness!r}",
            field=f"{where}harness",
            help_text=f"Available harnesses: {', '.join(sorted(known))}.",
        )
