"""Wire models of an agent's MCP servers. The API does not check whether a server is reachable; a worker does when it
connects.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from footplate.api.wire.request_base import Body, Text
from footplate.domain.agents import mcp_servers
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json

MAX_SERVERS: Final = 20

ServerName = Annotated[Text, StringConstraints(min_length=1, max_length=255)]


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("must be a valid URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise ValueError("must be a full http or https URL, such as https://mcp.example.com/mcp")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError("must not have a user name, a password or a fragment")
    return url


class McpServer(Body):
    type: Literal["url"]
    name: ServerName
    url: Annotated[Text, StringConstraints(max_length=2048, pattern=r"^[!-~]+$"), AfterValidator(_check_url)]


def _check_distinct_names(servers: list[McpServer]) -> list[McpServer]:
    """Refuses server names that become equal when they are converted to the characters that providers accept."""
    names = [mcp_servers.sanitize_name(server.name) for server in servers]
    duplicate = next(
        (server.name for server in servers if names.count(mcp_servers.sanitize_name(server.name)) > 1), None
    )
    if duplicate is not None:
        raise ValueError(f"two servers have the name {duplicate!r} or an equivalent one")
    return servers


McpServers = Annotated[list[McpServer], Field(max_length=MAX_SERVERS), AfterValidator(_check_distinct_names)]


def normalise_servers(servers: Sequence[McpServer] | None) -> list[Json]:
    return [{"type": server.type, "name": server.name, "url": server.url} for server in servers or ()]


def check_toolsets(servers: Json, tools: Json, *, where: str = "") -> None:
    """Raises `InvalidRequest` for a toolset of a server that the agent does not have."""
    known = {server.get("name") for server in _as_list(servers) if isinstance(server, dict)}
    for index, tool in enumerate(_as_list(tools)):
        if (
            isinstance(tool, dict)
            and tool.get("type") == mcp_servers.TOOLSET
            and tool.get("mcp_server_name") not in known
        ):
            field = f"{where}tools.{index}.mcp_server_name"
            raise InvalidRequest(
                f"{field}: the agent has no MCP server named {tool.get('mcp_server_name')!r}",
                field=field,
                help_text="Use a name from the agent's `mcp_servers`, or add the server to that list.",
            )


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
