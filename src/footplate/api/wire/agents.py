"""Wire models of agents: request bodies, session and turn overrides, the stored definition, and the response."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, JsonValue, StringConstraints, Tag

from footplate.api.wire.base import (
    KEPT,
    Body,
    Metadata,
    MetadataPatch,
    Name,
    OnlyEmpty,
    Refused,
    Version,
    optional_timestamp,
    patched,
    timestamp,
)
from footplate.api.wire.mcp_servers import McpServers, check_toolsets, normalise_servers
from footplate.api.wire.multiagent import Multiagent
from footplate.api.wire.multiagent import check_harness as check_subagents
from footplate.api.wire.permissions import OwnPermissions
from footplate.api.wire.tools import Tools, normalise_tools
from footplate.domain.agents import Agent, shown, unless_shown
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject

EXTRAS: Final = ("harness", "role", "goal", "backstory", "limits", "model_parameters", "permissions")
"""Footplate's own fields. They appear in a definition only if they were set."""

ModelName = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Prompt = Annotated[str, StringConstraints(max_length=100_000)]
Persona = Annotated[str, StringConstraints(max_length=10_000)]


class ModelConfig(Body):
    """A model by name. A prefix such as `openai:` selects the provider."""

    id: ModelName
    speed: Literal["standard"] | None = None
    effort: Refused = None
    inference_geo: Refused = None


def _shape(value: object) -> str:
    return "string" if isinstance(value, str) else "object"


Model = Annotated[Annotated[ModelName, Tag("string")] | Annotated[ModelConfig, Tag("object")], Discriminator(_shape)]


class Limits(Body):
    max_iterations: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_retries: Annotated[
        int | None, Field(ge=0, le=100, description="How often a turn is retried after a temporary failure.")
    ] = None
    timeout_seconds: Annotated[
        float | None,
        Field(gt=0, le=604_800, description="Maximum duration of a turn. After it, the turn's status is `timed_out`."),
    ] = None


class ExecutionIdentity(Body):
    type: Literal["service_account"]


class Extras(Body):
    harness: Name | None = None
    role: Persona | None = None
    goal: Persona | None = None
    backstory: Prompt | None = None
    limits: Limits | None = None
    model_parameters: dict[str, JsonValue] | None = None


class AgentCreate(Extras):
    name: Name
    model: Model
    description: Annotated[str, StringConstraints(max_length=2048)] | None = None
    system: Prompt | None = None
    tools: Tools | None = None
    metadata: Metadata = Field(default_factory=dict)
    execution_identity: ExecutionIdentity | None = None
    mcp_servers: McpServers | None = None
    permissions: OwnPermissions | None = None
    skills: OnlyEmpty = None
    multiagent: Multiagent | None = None


class AgentUpdate(Extras):
    """An omitted field keeps its value, and null clears it. Lists are replaced; metadata is merged by key."""

    version: Version | None = None
    name: Name = KEPT
    model: Model = KEPT
    description: Annotated[str, StringConstraints(max_length=2048)] | None = None
    system: Prompt | None = None
    tools: Tools | None = None
    metadata: MetadataPatch | None = None
    execution_identity: ExecutionIdentity | None = None
    mcp_servers: McpServers | None = None
    permissions: OwnPermissions | None = None
    skills: OnlyEmpty = None
    multiagent: Multiagent | None = None


class AgentOverrides(Extras):
    """Fields that a session can override in its copy of the agent."""

    model: Model = KEPT
    system: Prompt | None = None
    tools: Tools | None = None
    mcp_servers: McpServers | None = None
    skills: OnlyEmpty = None


class TurnOverrides(Body):
    """Fields that can be overridden for one turn."""

    model: Model = KEPT
    system: Prompt | None = None
    limits: Limits | None = None
    model_parameters: dict[str, JsonValue] | None = None


def fields_of(body: AgentCreate | AgentUpdate | AgentOverrides | TurnOverrides) -> JsonObject:
    """Returns the normalised definition fields that this body sets. Null stays null in Footplate's own fields."""
    sent = body.model_fields_set
    fields: JsonObject = {}
    for name in ("description", "system", *EXTRAS):
        if name in sent:
            fields[name] = _plain(getattr(body, name))
    if "model" in sent:
        fields["model"] = model_object(body.model)
    if "tools" in sent:
        fields["tools"] = normalise_tools(getattr(body, "tools", None))
    if "mcp_servers" in sent:
        fields["mcp_servers"] = normalise_servers(getattr(body, "mcp_servers", None))
    return fields


def model_object(model: str | ModelConfig) -> JsonObject:
    return {"id": model if isinstance(model, str) else model.id, "speed": "standard"}


def _plain(value: Any) -> Json:
    plain: Json = value.model_dump(exclude_none=True) if isinstance(value, Body) else value
    return plain


def define(body: AgentCreate, multiagent: JsonObject | None) -> JsonObject:
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
    return checked(merge(defaults, fields_of(body)))


def merge(definition: JsonObject, fields: JsonObject) -> JsonObject:
    """Merges `fields` over `definition`. An empty description or system prompt becomes null, and Footplate's own fields
    are removed if null.
    """
    merged = {**definition, **fields}
    for name in ("description", "system"):
        merged[name] = merged[name] or None
    return {name: value for name, value in merged.items() if value is not None or name not in EXTRAS}


def checked(definition: JsonObject, *, where: str = "") -> JsonObject:
    """Raises `InvalidRequest` if parts of a definition contradict each other. Applies to merged definitions too."""
    check_toolsets(definition.get("mcp_servers"), definition.get("tools"), where=where)
    return definition


def change_of(body: AgentUpdate, multiagent: JsonObject | None, *, default_harness: str) -> Callable[[Agent], Agent]:
    """Returns the function that applies the update. `multiagent` has its agents already resolved to versions."""
    fields = fields_of(body)
    if "multiagent" in body.model_fields_set:
        fields["multiagent"] = multiagent

    def change(agent: Agent) -> Agent:
        new_fields = {**fields}
        if "tools" in new_fields:
            new_fields["tools"] = unless_shown(new_fields["tools"], agent.definition.get("tools"))
        metadata = agent.metadata
        if "metadata" in body.model_fields_set:
            metadata = patched(agent.metadata, body.metadata) if body.metadata is not None else {}
        definition = checked(merge(agent.definition, new_fields))
        check_subagents(definition, default_harness)
        return replace(
            agent,
            name=body.name if "name" in body.model_fields_set else agent.name,
            definition=definition,
            metadata=metadata,
        )

    return change


def snapshot(agent: Agent, overrides: JsonObject) -> JsonObject:
    """Returns the agent as a session stores it."""
    return {
        "id": agent.id,
        "type": "agent",
        "version": agent.version,
        "name": agent.name,
        **checked(merge(agent.definition, overrides), where="agent."),
    }


def answer(agent: Agent) -> JsonObject:
    return {
        "id": agent.id,
        "type": "agent",
        "version": agent.version,
        "name": agent.name,
        **shown(agent.definition),
        "metadata": {**agent.metadata},
        "created_at": timestamp(agent.created_at),
        "updated_at": timestamp(agent.updated_at),
        "archived_at": optional_timestamp(agent.archived_at),
    }


def check_harness(body: Extras, known: frozenset[str], *, where: str = "") -> None:
    if body.harness is not None and body.harness not in known:
        raise InvalidRequest(
            f"{where}harness: this server has no harness {body.harness!r}",
            field=f"{where}harness",
            help_text=f"Available harnesses: {', '.join(sorted(known))}.",
        )
