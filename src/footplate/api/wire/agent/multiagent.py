"""Wire models of an agent's `multiagent` field: its subagents, each of which runs in its own thread of the session."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from footplate.api.wire.request_base import UNSUPPORTED, Body, Id, Version
from footplate.domain.agents.agents_and_config import CUSTOM_TOOL_TYPE, Agent
from footplate.domain.agents.mcp_servers import SERVER_TOOLSETS, sanitize_name
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject, as_objects

SUBAGENT_HARNESSES: Final = frozenset({"claude", "native"})
"""Harnesses that support subagents."""
_CLAUDE: Final = "claude"
_CLAUDE_LACKS: Final = ("mcp_servers", "model_parameters", "custom tools", SERVER_TOOLSETS)
"""What subagents of Claude Code cannot have."""
MAX_AGENTS: Final = 20
_FIELD: Final = "multiagent"
_RESERVED: Final = frozenset({"fork"})
"""Names that have another meaning in Claude Code."""


class AgentReference(Body):
    type: Literal["agent"]
    id: Id
    version: Version | None = None


def union_tag(value: object) -> str | None:
    """Returns the tag of a union member, or None for an unknown type, so that the error lists the known types."""
    if isinstance(value, str):
        return "id"
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return kind if isinstance(kind, str) else None


def _check_member_type(value: Any) -> Any:
    if union_tag(value) in {"self", "advisor"}:
        raise PydanticCustomError(UNSUPPORTED, "this type is not supported by this server; use the ID of an agent")
    return value


Member = Annotated[
    Annotated[Id, Tag("id")] | Annotated[AgentReference, Tag("agent")],
    Discriminator(union_tag),
    BeforeValidator(_check_member_type),
]


class Coordinator(Body):
    """The agent delegates work to subagents. They have their own prompt, model and tools, and share the working
    tree.
    """

    type: Literal["coordinator"]
    agents: Annotated[list[Member], Field(min_length=1, max_length=MAX_AGENTS)]


def _check_multiagent_type(value: Any) -> Any:
    if union_tag(value) == "multiagent_20261001":
        raise PydanticCustomError(
            UNSUPPORTED,
            "this type is not supported by this server; use `coordinator`",
        )
    return value


Multiagent = Annotated[Coordinator, BeforeValidator(_check_multiagent_type)]


def list_members(multiagent: Coordinator) -> list[tuple[str, int | None]]:
    """Returns the agents' IDs with the requested versions."""
    return [(one, None) if isinstance(one, str) else (one.id, one.version) for one in multiagent.agents]


def build_stored_references(members: Sequence[Agent] | None) -> JsonObject | None:
    """Returns the stored form, in which each agent has a fixed version."""
    return (
        None
        if members is None
        else {
            "type": "coordinator",
            "agents": [{"type": "agent", "id": member.id, "version": member.version} for member in members],
        }
    )


def check_definition(
    definition: JsonObject, members: Sequence[Agent] | None, default_harness: str, *, where: str = ""
) -> None:
    """Raises `InvalidRequest` if the agent cannot have subagents, or not these. `members`: None if they do not change;
    a new session checks them again.
    """
    harness = str(definition.get("harness") or default_harness)
    if definition.get(_FIELD) is not None and harness not in SUBAGENT_HARNESSES:
        raise InvalidRequest(
            f"{where}{_FIELD}: the harness {harness!r} does not support subagents",
            field=f"{where}{_FIELD}",
            help_text=f"Choose the harness {' or '.join(sorted(SUBAGENT_HARNESSES))} for this agent, or "
            f"omit `{_FIELD}`.",
        )
    members = members or ()
    for index, member in enumerate(members):
        for reason, advice in _find_objections(definition, harness, member, members[:index]):
            path = f"{where}{_FIELD}.agents.{index}"
            raise InvalidRequest(f"{path}: {member.id} {reason}", field=path, help_text=advice)


def _find_objections(
    definition: JsonObject, harness: str, member: Agent, earlier: Sequence[Agent]
) -> Iterator[tuple[str, str]]:
    """`definition`, `harness`: of the agent that uses this member."""
    name = member.name
    if member.archived_at is not None:
        yield "is archived", "Choose another agent."
    if any(other.id == member.id for other in earlier):
        yield "is listed twice", "List each agent once."
    if any(other.name == name for other in earlier):
        yield f"has the same name as another agent, {name!r}", "The model selects agents by name: use distinct names."
    if name in _RESERVED:
        yield f"has the name {name!r}, which Claude Code reserves", "Rename the agent."
    if member.definition.get(_FIELD) is not None:
        yield "has subagents itself", "Subagents cannot be nested: choose an agent without `multiagent`."
    if (own_harness := member.definition.get("harness")) is not None and own_harness != harness:
        yield (
            f"uses the harness {own_harness!r}, but subagents run in the harness of their agent, {harness!r}",
            "Remove `harness` from this agent, or choose another agent.",
        )
    yield from _find_unsupported_features(definition, harness, member)


def _find_unsupported_features(definition: JsonObject, harness: str, member: Agent) -> Iterator[tuple[str, str]]:
    own = member.definition
    custom = [tool for tool in as_objects(own.get("tools")) if tool.get("type") == CUSTOM_TOOL_TYPE]
    found = {
        "mcp_servers": own.get("mcp_servers"),
        "model_parameters": own.get("model_parameters"),
        "custom tools": custom,
        SERVER_TOOLSETS: own.get(SERVER_TOOLSETS),
    }
    for feature in _CLAUDE_LACKS if harness == _CLAUDE else ():
        if found[feature]:
            yield (
                f"has {feature}, which subagents of Claude Code do not support",
                f"Choose an agent without {feature}, or the harness 'native'.",
            )
    sources = _tool_sources(definition)
    for name, source in _tool_sources(own).items():
        if name in sources and sources[name] != source:
            kind = "MCP server" if source is not None else "toolset"
            yield (
                f"has another {kind} with the name {name!r}",
                "The rules of the agent apply to servers and toolsets of its subagents by name: use distinct names.",
            )


def _tool_sources(definition: JsonObject) -> dict[str, Json]:
    """Returns the URL of each MCP server, and None for each server-side toolset, by the name in rules."""
    servers, toolsets = as_objects(definition.get("mcp_servers")), as_objects(definition.get(SERVER_TOOLSETS))
    urls = {sanitize_name(str(server.get("name"))): server.get("url") for server in servers}
    return {**urls, **{str(toolset.get("name")): None for toolset in toolsets}}


def read_stored_references(definition: JsonObject) -> list[tuple[str, int]]:
    """Returns the subagents that a stored definition references."""
    multiagent = definition.get(_FIELD)
    named = multiagent.get("agents") if isinstance(multiagent, dict) else None
    found = [one for one in (named if isinstance(named, list) else []) if isinstance(one, dict)]
    return [(str(one["id"]), int(str(one["version"]))) for one in found]


def embed_members(members: Sequence[JsonObject]) -> JsonObject:
    """Returns the form that a session stores: the whole definition of each agent, without its own `multiagent`."""
    return {
        "type": "coordinator",
        "agents": [{name: value for name, value in member.items() if name != _FIELD} for member in members],
    }
