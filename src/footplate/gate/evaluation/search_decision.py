"""Decides whether a search (`Glob`, `Grep`) may run if a deny or ask rule covers files in the searched directory.

Claude Code omits such files from the results. Footplate's search tools do not know the rules, so the rule applies to
the whole search. The search is denied or requires approval, with the advice to search elsewhere. The caller lists the
files in the environment and passes their names.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from footplate.domain.json import Json
from footplate.domain.policy.permissions import TOOL_NAMES, Decision, PermissionOutcome
from footplate.gate.rules.evaluation_budget import BudgetExceeded, EvaluationBudget
from footplate.gate.rules.layered_policy import Policy
from footplate.gate.rules.path_context import FileTarget, PathContext, resolve_target
from footplate.gate.rules.rule_parser import READ

_MAX_STEPS: Final = 1_000_000_000
"""Steps for one search. The limit is higher than for a call, because a search is evaluated file by file in a thread."""
_GLOB: Final = "Glob"
_SEARCHES: Final = (_GLOB, "Grep")
_SPECIAL_CHARACTERS: Final = re.compile(r"[*?\[\]{}!\\]")
"""Wildcards and other special characters of a pattern."""
_RESTRICTING_OUTCOMES: Final = (PermissionOutcome.DENY, PermissionOutcome.ASK)


@dataclass(frozen=True, slots=True)
class Search:
    """The files that a search may show."""

    directory: FileTarget
    suffix: str
    """The ending of the names of these files."""


def parse_search(
    policy: Policy, tool: str, tool_input: Mapping[str, Json], context: PathContext, directory: str | None
) -> Search | None:
    """Return the search that a call makes. None if the call is not a search, or no rule forbids reading files."""
    name = TOOL_NAMES.get(tool, tool)
    if name not in _SEARCHES or not any(policy.path_rules(READ, outcome) for outcome in _RESTRICTING_OUTCOMES):
        return None
    path = str(tool_input.get("path") or ".")
    pattern = str(tool_input.get("pattern") or "") if name == _GLOB else ""
    literal_prefix = _SPECIAL_CHARACTERS.split(pattern, maxsplit=1)[0].rpartition("/")
    below = resolve_target(
        context, directory or context.root, posixpath.join(path, literal_prefix[0] + literal_prefix[1])
    )
    return Search(below, _SPECIAL_CHARACTERS.split(pattern)[-1].rpartition("/")[2])


def decide_search(policy: Policy, search: Search, names: Iterable[str], context: PathContext) -> Decision | None:
    """Decide a search. `names` are the files below its directory. Returns None if no rule forbids reading one."""
    below = search.directory
    context = replace(context, budget=EvaluationBudget(_MAX_STEPS))
    shown = [name for name in names if name.endswith(search.suffix)]
    try:
        return _decide_files(policy, below, shown, context)
    except BudgetExceeded:
        return Decision(
            PermissionOutcome.DENY,
            "Evaluating the permission rules for so many files would take too long, so the search was denied. "
            "Search a smaller directory, or use a narrower pattern.",
        )


def _decide_files(policy: Policy, below: FileTarget, names: Iterable[str], context: PathContext) -> Decision | None:
    for outcome in _RESTRICTING_OUTCOMES:
        for name in names:
            path = posixpath.join(below.path, name)
            file_target = FileTarget(path, posixpath.join(below.real_path or below.path, name))
            if (matched := policy.find_path_rule(READ, outcome, file_target, context)) is not None:
                # The reason does not name the file, because that would reveal what the rule hides.
                return matched.make_decision(
                    f"The search may show a file that {matched.rule.text} applies to. Search another directory or "
                    "narrow the pattern."
                )
    return None
