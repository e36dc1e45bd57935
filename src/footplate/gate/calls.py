"""Decides one tool call of any kind by the rules. Every input gets a decision: a malformed one requires approval."""

from collections.abc import Mapping
from typing import Final

from footplate.domain.json import Json
from footplate.domain.permissions import TOOL_NAMES, Decision, Outcome
from footplate.gate import commands
from footplate.gate.domains import host_of
from footplate.gate.evaluation_budget import BudgetExceeded, EvaluationBudget
from footplate.gate.paths import protected
from footplate.gate.places import Place, Target, target
from footplate.gate.policy import Placed, Policy
from footplate.gate.rules import AGENT, BASH, EDIT, READ, WEB_FETCH, Parameter

_PATHS: Final = {
    "Read": READ,
    "Glob": READ,
    "Grep": READ,
    "Edit": EDIT,
    "Write": EDIT,
    "NotebookEdit": EDIT,
    "MultiEdit": EDIT,
}
_FIELDS: Final = ("file_path", "path", "notebook_path")
_GLOBS: Final = "*?["


def decide(
    policy: Policy, tool: str, given: Mapping[str, Json], place: Place, *, directory: str | None = None
) -> Decision:
    """Decide a call. `tool` is the name in the managed agents API (`bash`) or in Claude Code (`Bash`)."""
    try:
        return _decide(policy, tool, given, place.with_new_budget(), directory)
    except BudgetExceeded:
        return commands.TOO_MUCH_WORK


def _decide(policy: Policy, tool: str, given: Mapping[str, Json], place: Place, directory: str | None) -> Decision:
    name = TOOL_NAMES.get(tool, AGENT if tool == "Task" else tool)
    for outcome in (Outcome.DENY, Outcome.ASK):
        if (placed := _special(policy, name, outcome, given, place.budget)) is not None:
            decision = placed.says(f"{placed.rule.text} applies to this call.")
            if outcome is Outcome.DENY or name != BASH:
                return decision
            command = _command(policy, given, place, directory)
            return command if command.outcome is Outcome.DENY else decision
    if name == BASH:
        return _command(policy, given, place, directory)
    if name in _PATHS:
        return _file(policy, name, given, place, directory or place.root)
    if name == WEB_FETCH:
        return _fetch(policy, given)
    # Starting a subagent is allowed by default, because each of its calls is decided separately.
    return _plain(policy, name, given, otherwise=Outcome.ALLOW if name == AGENT else Outcome.ASK)


def _command(policy: Policy, given: Mapping[str, Json], place: Place, directory: str | None) -> Decision:
    command = given.get("command")
    if isinstance(command, str):
        return commands.decide(policy, command, place, directory=directory)
    if command is None and given.get("restart") is True:
        return _plain(policy, BASH, given, otherwise=Outcome.ALLOW)
    return _plain(policy, BASH, given)


def _file(policy: Policy, name: str, given: Mapping[str, Json], place: Place, directory: str) -> Decision:
    tool = _PATHS[name]
    names = sorted({name, tool}) if tool == EDIT else [name]
    found = _target(name, given, place, directory)
    for outcome in (Outcome.DENY, Outcome.ASK):
        for each in names:
            if (placed := policy.whole(each, outcome)) is not None:
                return placed.says(f"{placed.rule.text} applies to every call of this tool.")
        for kind in (READ, EDIT) if tool == EDIT else (READ,):
            if found is not None and (placed := policy.path(kind, outcome, found, place)) is not None:
                return placed.says(f"{placed.rule.text} applies to {found.path}.")
    if policy.restricts_files and (found is None or found.real is None):
        return Decision(Outcome.ASK, "The file that this call uses cannot be determined.")
    # As in Claude Code, a bare `Edit` allow rule applies to that tool only, not to `Write`.
    if (placed := policy.whole(name, Outcome.ALLOW)) is not None:
        return placed.says(f"{placed.rule.text} allows every call of this tool.")
    if found is None:
        return Decision(Outcome.ASK, "The file that this call uses cannot be determined.")
    return _one_file(policy, tool, found, place)


def _one_file(policy: Policy, tool: str, found: Target, place: Place) -> Decision:
    """Allow one file by a path rule, or because the call only reads inside the workspace. Otherwise ask."""
    part = protected(found.path.removeprefix(place.root)) or protected((found.real or "").removeprefix(place.root))
    for placed, pattern in policy.paths(tool, Outcome.ALLOW):
        if pattern.permits(found, place) and (tool == READ or part is None or pattern.names(part)):
            return placed.says(f"{placed.rule.text} allows {found.path}.")
    if tool == READ and found.real is not None and place.holds(found.path) and place.holds(found.real):
        return Decision(Outcome.ALLOW, "It only reads inside the workspace.")
    if part is not None and tool == EDIT:
        return Decision(
            Outcome.ASK,
            f"The path contains {part}, which programs execute or read as configuration, and no rule names it.",
        )
    return Decision(Outcome.ASK, f"No rule allows {found.path}.")


def _target(name: str, given: Mapping[str, Json], place: Place, directory: str) -> Target | None:
    path = next((given[key] for key in _FIELDS if given.get(key) is not None), None)
    pattern = given.get("pattern") if name == "Glob" else None
    if path is None and name in {"Glob", "Grep"}:
        path = "."
    if not isinstance(path, str) or "\0" in path or not path:
        return None
    if isinstance(pattern, str):
        fixed = pattern[: min((at for mark in _GLOBS if (at := pattern.find(mark)) >= 0), default=len(pattern))]
        if ".." in pattern.split("/") or "\0" in pattern:
            return None
        if fixed.startswith(("/", "~")):
            path = fixed.rpartition("/")[0] or "/"
    return target(place, directory, path)


def _fetch(policy: Policy, given: Mapping[str, Json]) -> Decision:
    url = given.get("url")
    host = host_of(url) if isinstance(url, str) else None
    for outcome in (Outcome.DENY, Outcome.ASK, Outcome.ALLOW):
        if (placed := policy.whole(WEB_FETCH, outcome)) is not None:
            if outcome is Outcome.ALLOW and host is None and _restricts_hosts(policy):
                break
            return placed.says(f"{placed.rule.text} applies to every call of this tool.")
        if host is not None and (placed := policy.domain(outcome, host)) is not None:
            return placed.says(f"{placed.rule.text} applies to {host}.")
    if host is None:
        return Decision(Outcome.ASK, "The host of this URL cannot be determined.")
    return Decision(Outcome.ASK, f"No rule allows {host}.")


def _restricts_hosts(policy: Policy) -> bool:
    return any(
        each.rule.outcome is not Outcome.ALLOW and each.rule.tool.matches(WEB_FETCH) and not each.rule.bare
        for each in policy.rules
    )


def _plain(policy: Policy, name: str, given: Mapping[str, Json], *, otherwise: Outcome = Outcome.ASK) -> Decision:
    """Decide a tool whose rules apply to all of its calls, or to agents by name."""
    agent = given.get("subagent_type")
    for outcome in (Outcome.DENY, Outcome.ASK, Outcome.ALLOW):
        if (placed := policy.whole(name, outcome)) is not None:
            return placed.says(f"{placed.rule.text} applies to every call of this tool.")
        if name == AGENT and isinstance(agent, str):
            for placed, specifier in policy.special(AGENT, outcome):
                if not isinstance(specifier, Parameter) and specifier.matches(agent):
                    return placed.says(f"{placed.rule.text} applies to the agent {agent}.")
    if otherwise is Outcome.ALLOW:
        return Decision(otherwise, "It has no effect by itself.")
    return Decision(otherwise, f"No rule allows {name}.")


def _special(
    policy: Policy, name: str, outcome: Outcome, given: Mapping[str, Json], budget: EvaluationBudget
) -> Placed | None:
    """Return the first rule of this outcome for a field of the call's input, such as `run_in_background:true`."""
    for placed, specifier in policy.special(name, outcome):
        if isinstance(specifier, Parameter):
            value = given.get(specifier.name)
            text = str(value).lower() if isinstance(value, bool) else str(value)
            budget.compare(1, text)
            if isinstance(value, str | int | float) and specifier.value.matches(text):
                return placed
    return None
