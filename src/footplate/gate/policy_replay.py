"""Evaluates proposed rules against past tool calls, without side effects.

The environment of a past call no longer exists, so the targets of symbolic links are unknown. Each call is therefore
evaluated twice: as if no path were a symbolic link, and as if any path could be a link with an unknown target. If the
results differ, the result is marked as depending on links. Hooks do not run again.
"""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from footplate.domain.agents import mcp_servers
from footplate.domain.agents.agents_and_config import resolve_config
from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import HookEvent
from footplate.domain.policy.permissions import TOOL_NAMES, Decision, Layer, PermissionOutcome
from footplate.domain.policy.policy_replay import SessionRules, StoredCall
from footplate.gate import turn_gate
from footplate.gate.errors import InvalidRule
from footplate.gate.evaluation.tool_call_decision import decide_tool_call
from footplate.gate.hooks.hook_config import Hook
from footplate.gate.rules.path_context import NoLinks, PathContext

_TREES_DIRECTORY: Final = "/workspaces/"
"""The text before the organisation and the session in the path of a session's tree."""
_UNKNOWN_ROOT: Final = "/workspace"
_HOME: Final = "/nonexistent"


class _UnresolvableLinks:
    """Resolves no path at all."""

    def resolve(self, path: str) -> str | None:
        del path
        return None


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The decision that the proposed rules would make on one past call."""

    decision: Decision
    depends_on_links: bool = False
    hook: str | None = None
    """A hook that would also run. Its decision is not known."""


class PolicyReplay:
    """Evaluates calls of many sessions with the rules of one layer replaced by proposed ones. Raises `InvalidRule`."""

    def __init__(self, layer: Layer, permissions: JsonObject) -> None:
        self._layer = layer
        self._permissions = permissions
        self._parsed: dict[str, turn_gate.EffectiveRules] = {}
        turn_gate.parse_effective_rules([(layer, permissions)], resolve_config({}, {}, default_harness=""), None)

    def evaluate_call(self, organisation: str, call: StoredCall, rules: SessionRules) -> ReplayResult:
        """Evaluate one call, whose input must still be stored."""
        tool_input = call.input or {}
        try:
            effective_rules = self._effective_rules(call.session_id, rules)
        except InvalidRule as error:
            return ReplayResult(
                Decision(PermissionOutcome.DENY, f"All calls are denied because a rule is invalid. {error.message}")
            )
        tool = call.name if call.server is None else mcp_servers.model_tool_name(call.server, call.name)
        return evaluate_rules(
            effective_rules,
            tool,
            tool_input,
            organisation=organisation,
            session_id=call.session_id,
            from_mcp_server=call.server is not None,
        )

    def _effective_rules(self, session_id: str, rules: SessionRules) -> turn_gate.EffectiveRules:
        if session_id not in self._parsed:
            config = resolve_config(
                {**rules.agent, **({"permissions": {}} if self._layer is Layer.AGENT else {})}, {}, default_harness=""
            )
            other_layers = [each for each in rules.layers if each[0] is not self._layer]
            self._parsed[session_id] = turn_gate.parse_effective_rules(
                [*other_layers, (self._layer, self._permissions)], config, None
            )
        return self._parsed[session_id]


def evaluate_rules(
    rules: turn_gate.EffectiveRules,
    tool: str,
    tool_input: JsonObject,
    *,
    organisation: str,
    session_id: str,
    from_mcp_server: bool,
) -> ReplayResult:
    """Evaluate one call as the gate does, but without an environment and without running hooks."""
    context = create_path_context(tool_input, organisation, session_id)
    decisions = [
        rules.apply_default(
            decide_tool_call(rules.policy, tool, tool_input, replace(context, links=links)),
            from_mcp_server=from_mcp_server,
        )
        for links in (NoLinks(), _UnresolvableLinks())
    ]
    is_denied = decisions[0].outcome is PermissionOutcome.DENY
    hook = None if is_denied else _find_matching_hook(rules.hooks.get(HookEvent.BEFORE_TOOL, ()), tool)
    return ReplayResult(decisions[0], decisions[0].outcome is not decisions[1].outcome, hook)


def create_path_context(tool_input: JsonObject, organisation: str, session_id: str) -> PathContext:
    """Return the context of a call whose environment does not exist. No path in it is a link."""
    root = _find_tree_root(tool_input, organisation, session_id)
    return PathContext(root=root, home=_HOME, links=NoLinks())


def _find_matching_hook(hooks: Sequence[Hook], tool: str) -> str | None:
    name = TOOL_NAMES.get(tool, tool)
    return next((hook.name for hook in hooks if hook.matches(name)), None)


def _find_tree_root(tool_input: JsonObject, organisation: str, session_id: str) -> str:
    """Return the session's tree if the call's input contains its path, which includes the session's id."""
    mark = f"{_TREES_DIRECTORY}{organisation}/{session_id}"
    for value in tool_input.values():
        before, found, _ = value.partition(mark) if isinstance(value, str) else ("", "", "")
        if found:
            start = before[max((before.rfind(each) for each in " \t\n'\"=:;<>|&("), default=-1) + 1 :]
            return posixpath.normpath(start + mark) if start.startswith("/") or not start else _UNKNOWN_ROOT
    return _UNKNOWN_ROOT
