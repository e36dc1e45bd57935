"""A search shows what lies below a directory, also files that rules speak of: Claude Code leaves those out of it.

Here the tools know of no rules. So a search that may show such a file is refused or asked about as a whole, as the
rule says, with the advice to look elsewhere. Which files there are is known where the call would run.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from footplate.domain.json import Json
from footplate.domain.permissions import TOOL_NAMES, Decision, Outcome
from footplate.gate.evaluation_budget import BudgetExceeded, EvaluationBudget
from footplate.gate.places import Place, Target, target
from footplate.gate.policy import Policy
from footplate.gate.rules import READ

_MAX_STEPS: Final = 1_000_000_000
"""A search is judged beside other work, file by file."""
_GLOB: Final = "Glob"
_SEARCHES: Final = (_GLOB, "Grep")
_OPEN: Final = re.compile(r"[*?\[\]{}!\\]")
"""What in a pattern stands for other text."""
_FORBIDDING: Final = (Outcome.DENY, Outcome.ASK)


@dataclass(frozen=True, slots=True)
class Search:
    below: Target
    suffix: str
    """How the names end of what it may show."""


def search_of(
    policy: Policy, tool: str, given: Mapping[str, Json], place: Place, directory: str | None
) -> Search | None:
    """None: it searches nothing, or no rule forbids to read any file."""
    name = TOOL_NAMES.get(tool, tool)
    if name not in _SEARCHES or not any(policy.paths(READ, outcome) for outcome in _FORBIDDING):
        return None
    where = str(given.get("path") or ".")
    pattern = str(given.get("pattern") or "") if name == _GLOB else ""
    fixed = _OPEN.split(pattern, maxsplit=1)[0].rpartition("/")
    below = target(place, directory or place.root, posixpath.join(where, fixed[0] + fixed[1]))
    return Search(below, _OPEN.split(pattern)[-1].rpartition("/")[2])


def judge(policy: Policy, search: Search, names: Iterable[str], place: Place) -> Decision | None:
    """`names`: the files below. None: none of them is one that a rule forbids to read."""
    below = search.below
    place = replace(place, budget=EvaluationBudget(_MAX_STEPS))
    shown = [name for name in names if name.endswith(search.suffix)]
    try:
        return _judge_names(policy, below, shown, place)
    except BudgetExceeded:
        return Decision(
            Outcome.DENY,
            "Evaluating the permission rules for so many files would take too long, so the search was denied. "
            "Search a smaller directory, or use a narrower pattern.",
        )


def _judge_names(policy: Policy, below: Target, shown: Iterable[str], place: Place) -> Decision | None:
    for outcome in _FORBIDDING:
        for name in shown:
            path = posixpath.join(below.path, name)
            found = Target(path, posixpath.join(below.real or below.path, name))
            if (placed := policy.path(READ, outcome, found, place)) is not None:
                # Which file it is would tell what the rule keeps from whoever asks.
                return placed.says(
                    f"It may show a file that {placed.rule.text} is for: search elsewhere, or more narrowly."
                )
    return None
