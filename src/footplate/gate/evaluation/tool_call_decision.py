"""Evaluates the permission rules for one tool call of any kind, and returns allow, ask or deny.

A call with malformed input that no rule matches requires approval (ask), except a call that starts a subagent.
"""

from collections.abc import Mapping
from typing import Final

from footplate.domain.json import Json
from footplate.domain.policy.permissions import TOOL_NAMES, Decision, PermissionOutcome
from footplate.domain.sessions.groups import SESSION_TOOLS
from footplate.gate.evaluation import shell_command_decision
from footplate.gate.rules.domain_pattern import extract_host
from footplate.gate.rules.evaluation_budget import BudgetExceeded, EvaluationBudget
from footplate.gate.rules.layered_policy import LayeredRule, Policy
from footplate.gate.rules.path_context import FileTarget, PathContext, resolve_target
from footplate.gate.rules.path_pattern import find_protected_component
from footplate.gate.rules.rule_parser import AGENT, BASH, EDIT, READ, WEB_FETCH, ParameterPattern

_FILE_TOOLS: Final = {
    "Read": READ,
    "Glob": READ,
    "Grep": READ,
    "Edit": EDIT,
    "Write": EDIT,
    "NotebookEdit": EDIT,
    "MultiEdit": EDIT,
}
_PATH_FIELDS: Final = ("file_path", "path", "notebook_path")
_WILDCARDS: Final = "*?["


def decide_tool_call(
    policy: Policy, tool: str, tool_input: Mapping[str, Json], context: PathContext, *, directory: str | None = None
) -> Decision:
    """Decide a call. `tool` is the name in the managed agents API (`bash`) or in Claude Code (`Bash`)."""
    try:
        return _decide_within_budget(policy, tool, tool_input, context.with_new_budget(), directory)
    except BudgetExceeded:
        return shell_command_decision.TOO_EXPENSIVE


def _decide_within_budget(
    policy: Policy, tool: str, tool_input: Mapping[str, Json], context: PathContext, directory: str | None
) -> Decision:
    name = TOOL_NAMES.get(tool, AGENT if tool == "Task" else tool)
    for outcome in (PermissionOutcome.DENY, PermissionOutcome.ASK):
        if (matched := _find_parameter_rule(policy, name, outcome, tool_input, context.budget)) is not None:
            decision = matched.make_decision(f"{matched.rule.text} applies to this call.")
            if outcome is PermissionOutcome.DENY or name != BASH:
                return decision
            command = _decide_command(policy, tool_input, context, directory)
            return command if command.outcome is PermissionOutcome.DENY else decision
    if name == BASH:
        return _decide_command(policy, tool_input, context, directory)
    if name in _FILE_TOOLS:
        return _decide_file_tool(policy, name, tool_input, context, directory or context.root)
    if name == WEB_FETCH:
        return _decide_fetch(policy, tool_input)
    # Starting a subagent is allowed by default, because each of its calls is decided separately. So is a question,
    # which a person sees in any case, and starting a child session, which has the rules of its parent.
    is_allowed = name in {AGENT, TOOL_NAMES["ask_user"], *SESSION_TOOLS}
    default = PermissionOutcome.ALLOW if is_allowed else PermissionOutcome.ASK
    return _decide_by_tool_rules(policy, name, tool_input, default=default)


def _decide_command(
    policy: Policy, tool_input: Mapping[str, Json], context: PathContext, directory: str | None
) -> Decision:
    command = tool_input.get("command")
    if isinstance(command, str):
        return shell_command_decision.decide_command(policy, command, context, directory=directory)
    if command is None and tool_input.get("restart") is True:
        return _decide_by_tool_rules(policy, BASH, tool_input, default=PermissionOutcome.ALLOW)
    return _decide_by_tool_rules(policy, BASH, tool_input)


def _decide_file_tool(
    policy: Policy, name: str, tool_input: Mapping[str, Json], context: PathContext, directory: str
) -> Decision:
    tool = _FILE_TOOLS[name]
    names = sorted({name, tool}) if tool == EDIT else [name]
    file_target = _find_target(name, tool_input, context, directory)
    for outcome in (PermissionOutcome.DENY, PermissionOutcome.ASK):
        for each in names:
            if (matched := policy.find_tool_rule(each, outcome)) is not None:
                return matched.make_decision(f"{matched.rule.text} applies to every call of this tool.")
        for kind in (READ, EDIT) if tool == EDIT else (READ,):
            if (
                file_target is not None
                and (matched := policy.find_path_rule(kind, outcome, file_target, context)) is not None
            ):
                return matched.make_decision(f"{matched.rule.text} applies to {file_target.path}.")
    if policy.restricts_files and (file_target is None or file_target.real_path is None):
        return Decision(PermissionOutcome.ASK, "The file that this call uses cannot be determined.")
    # As in Claude Code, a bare `Edit` allow rule applies to that tool only, not to `Write`.
    if (matched := policy.find_tool_rule(name, PermissionOutcome.ALLOW)) is not None:
        return matched.make_decision(f"{matched.rule.text} allows every call of this tool.")
    if file_target is None:
        return Decision(PermissionOutcome.ASK, "The file that this call uses cannot be determined.")
    return _decide_file(policy, tool, file_target, context)


def _decide_file(policy: Policy, tool: str, file_target: FileTarget, context: PathContext) -> Decision:
    """Allow one file by a path rule, or because the call only reads inside the workspace. Otherwise ask."""
    part = find_protected_component(file_target.path.removeprefix(context.root)) or find_protected_component(
        (file_target.real_path or "").removeprefix(context.root)
    )
    for matched, pattern in policy.path_rules(tool, PermissionOutcome.ALLOW):
        if pattern.permits(file_target, context) and (tool == READ or part is None or pattern.names_component(part)):
            return matched.make_decision(f"{matched.rule.text} allows {file_target.path}.")
    if (
        tool == READ
        and file_target.real_path is not None
        and context.contains(file_target.path)
        and context.contains(file_target.real_path)
    ):
        return Decision(PermissionOutcome.ALLOW, "It only reads inside the workspace.")
    if part is not None and tool == EDIT:
        return Decision(
            PermissionOutcome.ASK,
            f"Writing to {part} needs a rule that allows it explicitly, "
            "because programs may execute its contents or read them as configuration.",
        )
    return Decision(PermissionOutcome.ASK, f"No rule allows {file_target.path}.")


def _find_target(name: str, tool_input: Mapping[str, Json], context: PathContext, directory: str) -> FileTarget | None:
    path = next((tool_input[key] for key in _PATH_FIELDS if tool_input.get(key) is not None), None)
    pattern = tool_input.get("pattern") if name == "Glob" else None
    if path is None and name in {"Glob", "Grep"}:
        path = "."
    if not isinstance(path, str) or "\0" in path or not path:
        return None
    if isinstance(pattern, str):
        literal_prefix = pattern[
            : min((at for mark in _WILDCARDS if (at := pattern.find(mark)) >= 0), default=len(pattern))
        ]
        if ".." in pattern.split("/") or "\0" in pattern:
            return None
        if literal_prefix.startswith(("/", "~")):
            path = literal_prefix.rpartition("/")[0] or "/"
    return resolve_target(context, directory, path)


def _decide_fetch(policy: Policy, tool_input: Mapping[str, Json]) -> Decision:
    url = tool_input.get("url")
    host = extract_host(url) if isinstance(url, str) else None
    for outcome in (PermissionOutcome.DENY, PermissionOutcome.ASK, PermissionOutcome.ALLOW):
        if (matched := policy.find_tool_rule(WEB_FETCH, outcome)) is not None:
            if outcome is PermissionOutcome.ALLOW and host is None and _restricts_hosts(policy):
                break
            return matched.make_decision(f"{matched.rule.text} applies to every call of this tool.")
        if host is not None and (matched := policy.find_domain_rule(outcome, host)) is not None:
            return matched.make_decision(f"{matched.rule.text} applies to {host}.")
    if host is None:
        return Decision(PermissionOutcome.ASK, "The host of this URL cannot be determined.")
    return Decision(PermissionOutcome.ASK, f"No rule allows {host}.")


def _restricts_hosts(policy: Policy) -> bool:
    return any(
        each.rule.outcome is not PermissionOutcome.ALLOW and each.rule.tool.matches(WEB_FETCH) and not each.rule.is_bare
        for each in policy.rules
    )


def _decide_by_tool_rules(
    policy: Policy, name: str, tool_input: Mapping[str, Json], *, default: PermissionOutcome = PermissionOutcome.ASK
) -> Decision:
    """Decide a tool whose rules apply to all of its calls, or to agents by name."""
    agent = tool_input.get("subagent_type")
    for outcome in (PermissionOutcome.DENY, PermissionOutcome.ASK, PermissionOutcome.ALLOW):
        if (matched := policy.find_tool_rule(name, outcome)) is not None:
            return matched.make_decision(f"{matched.rule.text} applies to every call of this tool.")
        if name == AGENT and isinstance(agent, str):
            for matched, specifier in policy.agent_and_parameter_rules(AGENT, outcome):
                if not isinstance(specifier, ParameterPattern) and specifier.matches(agent):
                    return matched.make_decision(f"{matched.rule.text} applies to the agent {agent}.")
    if default is PermissionOutcome.ALLOW:
        return Decision(default, "This tool requires no approval.")
    return Decision(default, f"No rule allows {name}.")


def _find_parameter_rule(
    policy: Policy, name: str, outcome: PermissionOutcome, tool_input: Mapping[str, Json], budget: EvaluationBudget
) -> LayeredRule | None:
    """Return the first rule of this outcome for a field of the call's input, such as `run_in_background:true`."""
    for matched, specifier in policy.agent_and_parameter_rules(name, outcome):
        if isinstance(specifier, ParameterPattern):
            value = tool_input.get(specifier.name)
            text = str(value).lower() if isinstance(value, bool) else str(value)
            budget.spend_on_comparison(1, text)
            if isinstance(value, str | int | float) and specifier.value.matches(text):
                return matched
    return None
