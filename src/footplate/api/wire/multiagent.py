"""An agent's `multiagent` on the wire: the agents that it may ask for help, each in a thread of its session."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from footplate.api.wire.base import UNSUPPORTED, Body, Id, Version
from footplate.domain.agents import CUSTOM, Agent
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject

HARNESSES: Final = frozenset({"claude"})
"""Those that can ask subagents."""
MAX_AGENTS: Final = 20
_FIELD: Final = "multiagent"
_RESERVED: Final = frozenset({"fork"})
"""What Claude Code itself calls something else."""


class AgentReference(Body):
    type: Literal["agent"]
    id: Id
    version: Version | None = None


def shape_of(value: object) -> str | None:
    """None, for what has no known type, makes the answer list the types that there are."""
    if isinstance(value, str):
        return "id"
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return kind if isinstance(kind, str) else None


def _named(value: Any) -> Any:
    if shape_of(value) in {"self", "advisor"}:
        raise PydanticCustomError(UNSUPPORTED, "of this type is not supported by this server; name an agent by its id")
    return value


Member = Annotated[
    Annotated[Id, Tag("id")] | Annotated[AgentReference, Tag("agent")], Discriminator(shape_of), BeforeValidator(_named)
]


class Coordinator(Body):
    """The agent asks others of its choice. They have their own prompt, model and tools, and work in the same tree."""

    type: Literal["coordinator"]
    agents: Annotated[list[Member], Field(min_length=1, max_length=MAX_AGENTS)]


def _coordinates(value: Any) -> Any:
    if shape_of(value) == "multiagent_20261001":
        raise PydanticCustomError(
            UNSUPPORTED,
            "of this type is not supported by this server; name the agents with the type `coordinator`",
        )
    return value


Multiagent = Annotated[Coordinator, BeforeValidator(_coordinates)]


def members_of(multiagent: Coordinator) -> list[tuple[str, int | None]]:
    """The agents' ids, with the version that is asked for."""
    return [(one, None) if isinstance(one, str) else (one.id, one.version) for one in multiagent.agents]


def stored(members: Sequence[Agent]) -> JsonObject:
    """As an agent's definition has it: each in one version."""
    check(members)
    return {
        "type": "coordinator",
        "agents": [{"type": "agent", "id": member.id, "version": member.version} for member in members],
    }


def check(members: Sequence[Agent]) -> None:
    """Raises `InvalidRequest` for those that no harness could ask as they are."""
    for index, member in enumerate(members):
        for reason, advice in _objections(member, members[:index]):
            place = f"{_FIELD}.agents.{index}"
            raise InvalidRequest(f"{place}: {member.id} {reason}", field=place, help_text=advice)


def _objections(member: Agent, earlier: Sequence[Agent]) -> Iterator[tuple[str, str]]:
    definition, name = member.definition, member.name
    if member.archived_at is not None:
        yield "is archived", "Name another agent."
    if any(other.id == member.id for other in earlier):
        yield "is named twice", "Name each agent once."
    if any(other.name == name for other in earlier):
        yield f"has the name of another one, {name!r}", "The model asks for them by name: give them different ones."
    if name in _RESERVED:
        yield f"is called {name!r}, which Claude Code takes for something else", "Give it another name."
    if definition.get(_FIELD) is not None:
        yield "has subagents itself", "An agent that is asked asks no others: name one without `multiagent`."
    if (harness := definition.get("harness")) is not None and harness not in HARNESSES:
        yield f"runs with the harness {harness!r}", "It would work inside Claude Code: leave its harness out."
    tools = definition.get("tools")
    custom = [tool for tool in (tools if isinstance(tools, list) else []) if shape_of(tool) == CUSTOM]
    more = {"mcp_servers": definition.get("mcp_servers"), "model_parameters": definition.get("model_parameters")}
    for what, found in {**more, "custom tools": custom}.items():
        if found:
            yield f"has {what}, which a subagent cannot have yet", "Name an agent without them."


def check_harness(definition: JsonObject, default_harness: str, *, where: str = "") -> None:
    harness = definition.get("harness") or default_harness
    if definition.get(_FIELD) is not None and harness not in HARNESSES:
        raise InvalidRequest(
            f"{where}{_FIELD}: the harness {harness!r} has no subagents",
            field=f"{where}{_FIELD}",
            help_text=f"Choose the harness {' or '.join(sorted(HARNESSES))!r} for this agent, or leave it out.",
        )


def references(definition: JsonObject) -> list[tuple[str, int]]:
    """The agents that a stored definition names."""
    multiagent = definition.get(_FIELD)
    named = multiagent.get("agents") if isinstance(multiagent, dict) else None
    found = [one for one in (named if isinstance(named, list) else []) if isinstance(one, dict)]
    return [(str(one["id"]), int(str(one["version"]))) for one in found]


def kept(members: Sequence[JsonObject]) -> JsonObject:
    """As a session keeps it: the whole of each agent, without what it may ask itself."""
    return {
        "type": "coordinator",
        "agents": [{name: value for name, value in member.items() if name != _FIELD} for member in members],
    }
