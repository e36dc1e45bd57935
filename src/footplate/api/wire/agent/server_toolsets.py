"""Wire models of an agent's server-side toolsets: Python functions of packages that are installed on this server.

They are a field of their own, because strict clients of the reference API refuse unknown types in the list of tools.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from footplate.api.wire.agent.tools import (
    MAX_TOOLS,
    DefaultToolConfig,
    McpToolConfig,
    check_unique_names,
    normalise_configs,
)
from footplate.api.wire.request_base import Body
from footplate.domain.agents import mcp_servers
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject, as_objects

MAX_TOOLSETS: Final = 20
MAX_SETTINGS_BYTES: Final = 16_384


def _check_settings(settings: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    if settings is not None and len(json.dumps(settings)) > MAX_SETTINGS_BYTES:
        raise ValueError(f"must have at most {MAX_SETTINGS_BYTES} bytes as JSON")
    return settings


class ServerToolset(Body):
    """Tools of a package that is installed on the API and the workers. By default each call requires approval."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    settings: Annotated[
        dict[str, JsonValue] | None,
        AfterValidator(_check_settings),
        Field(description="Settings for the functions of the toolset. They are not secret."),
    ] = None
    configs: Annotated[list[McpToolConfig] | None, Field(max_length=MAX_TOOLS), AfterValidator(check_unique_names)] = (
        None
    )
    default_config: DefaultToolConfig | None = None

    def normalise(self) -> JsonObject:
        return {
            "name": self.name,
            **({"settings": self.settings} if self.settings else {}),
            **normalise_configs(self.configs, self.default_config),
        }


def _check_distinct_names(toolsets: list[ServerToolset]) -> list[ServerToolset]:
    names = [toolset.name for toolset in toolsets]
    if duplicates := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"the toolset {min(duplicates)!r} is listed twice")
    return toolsets


ServerToolsets = Annotated[list[ServerToolset], Field(max_length=MAX_TOOLSETS), AfterValidator(_check_distinct_names)]


def normalise_toolsets(toolsets: Sequence[ServerToolset] | None) -> list[Json] | None:
    """Returns the toolsets as they are stored. None: the agent has none, and the field is omitted."""
    return [toolset.normalise() for toolset in toolsets or ()] or None


def check_installed(toolsets: Sequence[ServerToolset] | None, installed: frozenset[str], *, where: str = "") -> None:
    """Raises `InvalidRequest` for a toolset whose package is not installed here."""
    for index, toolset in enumerate(toolsets or ()):
        if toolset.name not in installed:
            field = f"{where}server_toolsets.{index}.name"
            raise InvalidRequest(
                f"{field}: this server has no toolset {toolset.name!r}",
                field=field,
                help_text=f"Installed toolsets: {', '.join(sorted(installed)) or 'none'}. Ask the operator to install "
                "the package on the API and on every worker.",
            )


def check_distinct_from_servers(servers: Json, toolsets: Json, *, where: str = "") -> None:
    """Raises `InvalidRequest` for a toolset with the name of an MCP server: the model could not tell their tools
    apart.
    """
    names = {mcp_servers.sanitize_name(str(server.get("name"))) for server in as_objects(servers)}
    for index, toolset in enumerate(as_objects(toolsets)):
        if toolset.get("name") in names:
            field = f"{where}server_toolsets.{index}.name"
            raise InvalidRequest(
                f"{field}: the agent has an MCP server with the same name, {toolset.get('name')!r}",
                field=field,
                help_text="Rename the MCP server. The names of servers and toolsets must differ.",
            )
