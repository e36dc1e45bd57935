"""Reads the reference from the installed SDK: methods, parameters, and the objects inside them.

Nothing is listed by hand, so a new field in a newer SDK fails the page until a probe claims it.
"""

import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import typing_extensions
from anthropic.resources.beta.agents import AsyncAgents, AsyncVersions
from anthropic.resources.beta.deployment_runs import AsyncDeploymentRuns
from anthropic.resources.beta.deployments import AsyncDeployments
from anthropic.resources.beta.environments import AsyncEnvironments, AsyncWork
from anthropic.resources.beta.files import AsyncFiles
from anthropic.resources.beta.sessions import AsyncEvents, AsyncResources, AsyncSessions, AsyncThreads
from anthropic.resources.beta.sessions.threads import AsyncEvents as AsyncThreadEvents
from anthropic.resources.beta.webhooks import AsyncWebhooks
from anthropic.types.beta import (
    BetaEnvironment,
    BetaFileMetadata,
    BetaManagedAgentsAgent,
    BetaManagedAgentsDeployment,
    BetaManagedAgentsDeploymentRun,
    BetaManagedAgentsSession,
)
from anthropic.types.beta.sessions import BetaManagedAgentsStreamSessionEvents
from pydantic import BaseModel

RESOURCES: Final[Mapping[str, Any]] = {
    "agents": AsyncAgents,
    "agents.versions": AsyncVersions,
    "deployments": AsyncDeployments,
    "deployment_runs": AsyncDeploymentRuns,
    "environments": AsyncEnvironments,
    "environments.work": AsyncWork,
    "files": AsyncFiles,
    "sessions": AsyncSessions,
    "sessions.events": AsyncEvents,
    "sessions.resources": AsyncResources,
    "sessions.threads": AsyncThreads,
    "sessions.threads.events": AsyncThreadEvents,
    "webhooks": AsyncWebhooks,
}
RESPONSES: Final[Mapping[str, type[BaseModel]]] = {
    "Agent": BetaManagedAgentsAgent,
    "Deployment": BetaManagedAgentsDeployment,
    "DeploymentRun": BetaManagedAgentsDeploymentRun,
    "Environment": BetaEnvironment,
    "File": BetaFileMetadata,
    "Session": BetaManagedAgentsSession,
}
COMMON: Final = ("betas", "workspace_id", "extra_headers", "extra_query", "extra_body", "timeout")
"""Parameters of every method. The SDK itself handles the last four."""
EVENTS: Final = "events"
EVERY: Final = "every method"
_PATH: Final = re.compile(r'(?:path_template\(\s*)?"(/v1/[^"]*)"')
_VERB: Final = re.compile(r"self\._(get_api_list|get|post|delete)\(")


@dataclass(frozen=True, slots=True)
class Method:
    name: str
    """`sessions.create`."""
    route: str
    """`POST /v1/sessions`; empty for a helper that calls other methods."""
    fields: Mapping[str, Any]
    """The type of each parameter."""


def methods() -> Iterator[Method]:
    for resource, cls in RESOURCES.items():
        for name, function in inspect.getmembers(cls, inspect.isfunction):
            if not name.startswith(("_", "with_")):
                yield Method(f"{resource}.{name}", _route(function), _parameters(function))


def objects_in(annotation: Any) -> Iterator[Any]:
    """Yields the typed dictionaries that a parameter may hold, without those nested in them."""
    if typing_extensions.is_typeddict(annotation):
        yield annotation
        return
    for inner in typing.get_args(annotation):
        yield from objects_in(inner)


def fields_of(typed_dict: Any) -> dict[str, Any]:
    """Returns the type of each field, without the field that names the type of the object."""
    hints = typing_extensions.get_type_hints(typed_dict, include_extras=False)
    return {name: hint for name, hint in hints.items() if not (name == "type" and _is_literal(hint))}


def title_of(typed_dict: Any) -> str:
    """Returns the short name of a type: `CustomToolParams` for BetaManagedAgentsCustomToolParams."""
    return str(typed_dict.__name__).removeprefix("BetaManagedAgents").removeprefix("Beta")


def event_types() -> list[str]:
    """Returns the types of all events that a stream may have."""
    union = typing.get_args(BetaManagedAgentsStreamSessionEvents)[0]
    return sorted(
        literal
        for model in typing.get_args(union)
        for literal in typing.get_args(model.model_fields["type"].annotation)
    )


def _parameters(function: Any) -> dict[str, Any]:
    hints = _hints(function)
    positional = [name for name in inspect.signature(function).parameters if name != "self"]
    return {name: hints.get(name) for name in positional if name not in COMMON}


def _hints(function: Any) -> dict[str, Any]:
    try:
        return typing_extensions.get_type_hints(function)
    except NameError:  # the types of a helper exist only for type checkers
        return {}


def _route(function: Any) -> str:
    source = inspect.getsource(function)
    verb, path = _VERB.search(source), _PATH.search(source)
    if verb is None or path is None:
        return ""
    return f"{verb.group(1).removesuffix('_api_list').upper()} {path.group(1)}"


def _is_literal(hint: Any) -> bool:
    return typing.get_origin(hint) is typing.Literal
