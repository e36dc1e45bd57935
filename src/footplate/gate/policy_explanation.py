"""Explains what the gate would decide about one tool call, without side effects: the decision, the rule, and the
decision on each part of a shell command.

The decision is made by the same code as that of a past call in a replay (`policy_replay.py`). Hooks do not run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from footplate.domain.agents.agents_and_config import resolve_config
from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import TOOL_NAMES, Decision, Layer, PermissionOutcome
from footplate.domain.policy.policy_replay import SessionRules
from footplate.gate import turn_gate
from footplate.gate.errors import InvalidRule
from footplate.gate.evaluation.shell_command_decision import CommandPart, explain_command
from footplate.gate.policy_replay import ReplayResult, create_path_context, evaluate_rules
from footplate.gate.rules.rule_parser import BASH

_MCP_PREFIX: Final = "mcp__"


@dataclass(frozen=True, slots=True)
class LayerRules:
    """The rules of one layer that were evaluated, by outcome."""

    layer: Layer
    rules: dict[PermissionOutcome, list[str]]


@dataclass(frozen=True, slots=True)
class CallExplanation:
    result: ReplayResult
    parts: Sequence[CommandPart]
    """The parts of a shell command. Empty for other calls."""
    layers: Sequence[LayerRules]


def explain_call(
    tool: str, tool_input: JsonObject, rules: SessionRules, *, organisation: str, session_id: str | None
) -> CallExplanation:
    """`tool` is the name that the model uses, such as `bash`, `Bash` or `mcp__server__tool`."""
    config = resolve_config({**rules.agent}, {}, default_harness="")
    try:
        effective = turn_gate.parse_effective_rules(rules.layers, config, None)
    except InvalidRule as error:
        reason = f"All calls are denied because a rule is invalid. {error.message}"
        return CallExplanation(ReplayResult(Decision(PermissionOutcome.DENY, reason)), (), ())
    result = evaluate_rules(
        effective,
        tool,
        tool_input,
        organisation=organisation,
        session_id=session_id or "",
        from_mcp_server=tool.startswith(_MCP_PREFIX),
    )
    parts: Sequence[CommandPart] = ()
    command = tool_input.get("command")
    if TOOL_NAMES.get(tool, tool) == BASH and isinstance(command, str):
        context = create_path_context(tool_input, organisation, session_id or "")
        parts = explain_command(effective.policy, command, context).parts
    return CallExplanation(result, parts, _group_by_layer(effective))


def _group_by_layer(effective: turn_gate.EffectiveRules) -> list[LayerRules]:
    found: dict[Layer, LayerRules] = {}
    for each in effective.policy.rules:
        layer = found.setdefault(each.layer, LayerRules(each.layer, {outcome: [] for outcome in PermissionOutcome}))
        layer.rules[each.rule.outcome].append(each.rule.text)
    return [found[layer] for layer in sorted(found)]
