"""The reference's own words for permissions, `always_allow` and `always_ask`, as rules of the agent's layer."""

from collections.abc import Iterator, Mapping
from typing import Final

from footplate.domain.agents import BUILT_IN_TOOLS, TOOLSET
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json
from footplate.domain.permissions import Layer, Outcome
from footplate.gate.policy import Placed
from footplate.gate.rules import parse_rule

NAMES: Final = {
    "bash": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "glob": "Glob",
    "grep": "Grep",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
}
"""The reference's names of tools, as Claude Code writes them and as rules have them."""
_OUTCOMES: Final = {"always_allow": Outcome.ALLOW, "always_ask": Outcome.ASK}
_MCP_TOOLSET: Final = "mcp_toolset"


def rules_of(tools: Json) -> tuple[Placed, ...]:
    """From an agent's `tools`. What says nothing is allowed in the built-in toolset and asked of an MCP server."""
    found: list[Placed] = []
    for index, tool in enumerate(tools if isinstance(tools, list) else []):
        if isinstance(tool, dict):
            found += (
                Placed(Layer.AGENT, parse_rule(text, outcome)) for text, outcome in _rules(tool, f"tools.{index}")
            )
    return tuple(found)


def _rules(tool: Mapping[str, Json], where: str) -> Iterator[tuple[str, Outcome]]:
    default = tool.get("default_config")
    if tool.get("type") == TOOLSET:
        usual = _outcome(default, f"{where}.default_config") or Outcome.ALLOW
        said = dict(_configs(tool, where))
        yield from ((NAMES[name], said.get(name, usual)) for name in BUILT_IN_TOOLS)
    elif tool.get("type") == _MCP_TOOLSET:
        server = str(tool.get("mcp_server_name"))
        said = dict(_configs(tool, where))
        yield from ((f"mcp__{server}__{name}", outcome) for name, outcome in said.items())
        usual = _outcome(default, f"{where}.default_config") or Outcome.ASK
        if usual is Outcome.ALLOW:  # the default is to ask: a rule that asks would close what a config opens
            yield f"mcp__{server}", usual


def _configs(tool: Mapping[str, Json], where: str) -> Iterator[tuple[str, Outcome]]:
    configs = tool.get("configs")
    for index, config in enumerate(configs if isinstance(configs, list) else []):
        if isinstance(config, dict) and (outcome := _outcome(config, f"{where}.configs.{index}")) is not None:
            yield str(config.get("name")), outcome


def _outcome(config: Json, where: str) -> Outcome | None:
    policy = config.get("permission_policy") if isinstance(config, dict) else None
    if policy is None:
        return None
    kind = policy.get("type") if isinstance(policy, dict) else policy
    if isinstance(kind, str) and kind in _OUTCOMES:
        return _OUTCOMES[kind]
    field = f"{where}.permission_policy"
    raise InvalidRequest(
        f"{field}: {kind!r} is not supported: nobody is named who would judge.",
        field=field,
        help_text="Use always_allow or always_ask, and rules for what lies between.",
    )
