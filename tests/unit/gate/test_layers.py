"""The strictest outcome decides, whichever layer a rule belongs to: deny, then ask, then allow."""

from collections.abc import Mapping
from itertools import product

import pytest
from tests.unit.gate.rule_setup import CONTEXT

from footplate.domain.agents.agents_and_config import resolve_config
from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome
from footplate.gate.evaluation.shell_command_decision import explain_command
from footplate.gate.evaluation.tool_call_decision import decide_tool_call
from footplate.gate.rules.layered_policy import Policy
from footplate.gate.rules.toolset_permissions import convert_toolset_policies

TOOLSET = "agent_toolset_20260401"


def _decide(*rules: tuple[Layer, PermissionOutcome]) -> Decision:
    layers = {layer: {outcome: ["Bash(make *)"]} for layer, outcome in rules}
    return explain_command(Policy.parse(layers), "make test", CONTEXT).decision


@pytest.mark.parametrize(("high", "low"), [(a, b) for a, b in product(Layer, Layer) if a < b])
def test_the_strictest_rule_of_two_layers_decides(high: Layer, low: Layer) -> None:
    order = (PermissionOutcome.DENY, PermissionOutcome.ASK, PermissionOutcome.ALLOW)
    for one, other in product(order, order):
        strictest = min(one, other, key=order.index)
        decision = _decide((high, one), (low, other))
        assert decision.outcome is strictest
        assert decision.layer is (high if one is strictest else low)
        assert decision.rule == "Bash(make *)"


def test_the_default_is_to_ask_and_any_layer_satisfies_it() -> None:
    assert _decide().outcome is PermissionOutcome.ASK
    for layer in Layer:
        assert _decide((layer, PermissionOutcome.ALLOW)).outcome is PermissionOutcome.ALLOW


def _policies(*tools: JsonObject) -> Mapping[str, str]:
    return resolve_config({"tools": [*tools]}, {}, default_harness="native").policies


def _reference(tools: list[JsonObject], tool: str) -> str:
    return decide_tool_call(
        Policy(convert_toolset_policies(_policies(*tools))), tool, {"command": "make"}, CONTEXT
    ).outcome.value


def test_toolset_policies_are_rules_of_the_agent() -> None:
    allow: JsonObject = {"type": "always_allow"}
    ask: JsonObject = {"type": "always_ask"}
    assert _policies({"type": TOOLSET}) == {}
    assert _reference([{"type": TOOLSET, "default_config": {"permission_policy": allow}}], "bash") == "allow"
    assert _reference([{"type": TOOLSET, "default_config": {"permission_policy": ask}}], "bash") == "ask"
    own: JsonObject = {
        "type": TOOLSET,
        "default_config": {"permission_policy": ask},
        "configs": [{"name": "bash", "permission_policy": allow}],
    }
    assert _reference([own], "bash") == "allow"
    assert _reference([own], "web_search") == "ask"
    server: JsonObject = {
        "type": "mcp_toolset",
        "mcp_server_name": "github",
        "configs": [{"name": "get", "permission_policy": allow}],
    }
    assert _reference([server], "mcp__github__get") == "allow"
    assert _reference([server], "mcp__github__put") == "ask"
    assert _reference([{**server, "default_config": {"permission_policy": allow}}], "mcp__github__put") == "allow"


def test_a_session_cannot_allow_a_tool_that_the_agent_always_asks_about() -> None:
    ask: JsonObject = {"name": "bash", "permission_policy": {"type": "always_ask"}}
    asked = convert_toolset_policies(_policies({"type": TOOLSET, "configs": [ask]}))
    session = Policy.parse({Layer.SESSION: {PermissionOutcome.ALLOW: ["Bash(make *)"]}}).rules
    assert explain_command(Policy([*asked, *session]), "make", CONTEXT).decision.outcome is PermissionOutcome.ASK


def test_the_auto_policy_needs_approval() -> None:
    auto: JsonObject = {"type": TOOLSET, "default_config": {"permission_policy": {"type": "auto"}}}
    assert _reference([auto], "bash") == "ask"
