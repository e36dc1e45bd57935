"""Makes the same calls in a session of either harness, with the settings file imported.

All calls are in one model response. No approval is decided, so the turn parks, and the calls made until then were
allowed.
"""

from typing import Any, Final

from bench.support.claude_settings.settings_cases import LOCAL, SETTINGS, SettingsCall, SettingsCase
from bench.support.clients import TOOLSET, Client, Event
from bench.support.cluster import Cluster
from bench.support.crash import interrupted_turn
from bench.support.mcp_server.server_process import NAME, McpProcess
from footplate.domain.policy.permissions import TOOL_NAMES, PermissionOutcome
from footplate.domain.sessions import events as ev
from footplate.environments.isolation.filesystem_view import WORKSPACE_MOUNT
from footplate.testing import replies, text, tool

HARNESSES: Final = ("native", "claude")
_NATIVE: Final = {name: ours for ours, name in TOOL_NAMES.items()}
_USES: Final = (ev.AGENT_TOOL_USE, ev.AGENT_MCP_TOOL_USE)
_RESULTS: Final = (ev.AGENT_TOOL_RESULT, ev.AGENT_MCP_TOOL_RESULT)
_PROMPT: Final = ("prompt",)
"""Parameters that only Claude Code's tools have."""


async def make_calls(
    cluster: Cluster, client: Client, case: SettingsCase, harness: str, project_id: str, mcp: McpProcess
) -> list[tuple[PermissionOutcome, str]]:
    """Returns the same as `cli.ask`. Raises `AssertionError` if an event contradicts what was done."""
    script = f"{harness}-{case.name}"
    await cluster.model.install(script, replies([_step(call, harness) for call in case.calls], [text("Done.")]))
    layers = [await _import_settings(client, case, name) for name in (SETTINGS, LOCAL)]
    agent = await client.agent(
        mcp_servers=mcp.agent_fields["mcp_servers"],
        tools=[
            {**TOOLSET, "configs": [{"name": "web_fetch", "enabled": True}]},
            {"type": "mcp_toolset", "mcp_server_name": NAME},
        ],
        extra_body={"harness": harness, "permissions": layers[0]},
    )
    session_id = await client.session(
        agent, extra_body={"project_ids": [project_id], **({"permissions": layers[1]} if layers[1] else {})}
    )
    received = await client.run_turn(session_id, f"Go. [[script:{script}]]", patience=180)
    shown = {
        event.get("tool_use_id") or event["mcp_tool_use_id"]: str(event["content"])
        for event in received
        if event["type"] in _RESULTS
    }
    uses = [event for event in received if event["type"] in _USES]
    if len(uses) != len(case.calls):
        raise AssertionError(f"{len(uses)} of {len(case.calls)} calls are in the log: {received[-1]}")
    tree = interrupted_turn.workspace_path(cluster, session_id)
    found = []
    for call in case.calls:
        use = next((use for use in uses if _is_same_call(use["input"], call)), None)
        if use is None:
            raise AssertionError(f"{call.title}: not in the log, which has {[use['input'] for use in uses]}")
        outcome, seen = PermissionOutcome(use["evaluated_permission"]), shown.get(use["id"], "")
        made = (tree / call.leaves).exists() if call.leaves else bool(call.shows) and call.shows in seen
        if made != (outcome is PermissionOutcome.ALLOW):
            did = "made" if made else "not made"
            raise AssertionError(f"{call.title}: {outcome.value} is in the log, and the call was {did}: {seen}")
        found.append((outcome, _permission_reason(use) or seen))
    return found


def _step(call: SettingsCall, harness: str) -> Any:
    if harness == "claude":
        return tool(call.tool, call.input)
    return tool(_NATIVE.get(call.tool, call.tool), _without_prompt(call.input))


def _is_same_call(given: dict[str, Any], call: SettingsCall) -> bool:
    """Whether an event belongs to the call. Claude Code starts calls in its own order, and inputs are unique in a
    shape. Of a call that it runs, Claude Code passes on the absolute path, and that is logged.
    """
    return _comparable(given) == _comparable(call.input)


def _comparable(given: dict[str, Any]) -> dict[str, Any]:
    shared = _without_prompt(given)
    if "file_path" in shared:
        shared["file_path"] = str(shared["file_path"]).removeprefix(f"{WORKSPACE_MOUNT}/")
    return shared


def _without_prompt(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in _PROMPT}


def _permission_reason(use: Event) -> str:
    return str((use.get("permission") or {}).get("reason") or "")


async def _import_settings(client: Client, case: SettingsCase, name: str) -> dict[str, Any] | None:
    settings = case.settings(name)
    if settings is None:
        return None
    response: Any = await client.sdk.post("/v1/policies/import", body={"settings": settings}, cast_to=dict[str, Any])
    return dict(response["permissions"])
