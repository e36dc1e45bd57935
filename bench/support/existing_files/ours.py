"""Makes the same calls in a session of either harness, with the settings file imported.

All calls are in one model response. No approval is decided, so the turn parks, and the calls made until then were
allowed.
"""

from typing import Any, Final

from bench.support.clients import TOOLSET, Client, Event
from bench.support.cluster import Cluster
from bench.support.crash import work
from bench.support.existing_files.shapes import LOCAL, SETTINGS, Call, Shape
from bench.support.mcp_server.process import NAME, McpProcess
from footplate.domain import events as ev
from footplate.domain.permissions import TOOL_NAMES, PermissionOutcome
from footplate.testing import replies, text, tool

HARNESSES: Final = ("native", "claude")
_NATIVE: Final = {name: ours for ours, name in TOOL_NAMES.items()}
_USES: Final = (ev.AGENT_TOOL_USE, ev.AGENT_MCP_TOOL_USE)
_RESULTS: Final = (ev.AGENT_TOOL_RESULT, ev.AGENT_MCP_TOOL_RESULT)
_PROMPT: Final = ("prompt",)
"""Parameters that only Claude Code's tools have."""


async def ask(
    cluster: Cluster, client: Client, shape: Shape, harness: str, project_id: str, mcp: McpProcess
) -> list[tuple[PermissionOutcome, str]]:
    """Returns the same as `cli.ask`. Raises `AssertionError` if an event contradicts what was done."""
    script = f"{harness}-{shape.name}"
    await cluster.model.install(script, replies([_step(call, harness) for call in shape.calls], [text("Done.")]))
    layers = [await _imported(client, shape, name) for name in (SETTINGS, LOCAL)]
    agent = await client.agent(
        mcp_servers=mcp.definition["mcp_servers"],
        tools=[
            {**TOOLSET, "configs": [{"name": "web_fetch", "enabled": True}]},
            {"type": "mcp_toolset", "mcp_server_name": NAME},
        ],
        extra_body={"harness": harness, "permissions": layers[0]},
    )
    session_id = await client.session(
        agent, extra_body={"project_ids": [project_id], **({"permissions": layers[1]} if layers[1] else {})}
    )
    told = await client.run_turn(session_id, f"Go. [[script:{script}]]", patience=180)
    shown = {
        event.get("tool_use_id") or event["mcp_tool_use_id"]: str(event["content"])
        for event in told
        if event["type"] in _RESULTS
    }
    uses = [event for event in told if event["type"] in _USES]
    if len(uses) != len(shape.calls):
        raise AssertionError(f"{len(uses)} of {len(shape.calls)} calls are in the log: {told[-1]}")
    tree = work.workspace(cluster, session_id)
    found = []
    for call in shape.calls:
        use = next(use for use in uses if _same(use["input"], call))
        outcome, seen = PermissionOutcome(use["evaluated_permission"]), shown.get(use["id"], "")
        made = (tree / call.leaves).exists() if call.leaves else bool(call.shows) and call.shows in seen
        if made != (outcome is PermissionOutcome.ALLOW):
            did = "made" if made else "not made"
            raise AssertionError(f"{call.title}: {outcome.value} is in the log, and the call was {did}: {seen}")
        found.append((outcome, _why(use) or seen))
    return found


def _step(call: Call, harness: str) -> Any:
    if harness == "claude":
        return tool(call.tool, call.input)
    return tool(_NATIVE.get(call.tool, call.tool), _own(call.input))


def _same(given: dict[str, Any], call: Call) -> bool:
    """Whether an event belongs to the call. Claude Code starts calls in its own order, and inputs are unique in a
    shape.
    """
    return _own(given) == _own(call.input)


def _own(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in _PROMPT}


def _why(use: Event) -> str:
    return str((use.get("permission") or {}).get("reason") or "")


async def _imported(client: Client, shape: Shape, name: str) -> dict[str, Any] | None:
    settings = shape.settings(name)
    if settings is None:
        return None
    answer: Any = await client.sdk.post("/v1/policies/import", body={"settings": settings}, cast_to=dict[str, Any])
    return dict(answer["permissions"])
