"""Checks whether two glob patterns can match the same path. Used when a command names files by a glob and a rule
forbids some files.
"""

import re
from functools import lru_cache
from typing import Final

from footplate.gate.evaluation_budget import PER_CELL, EvaluationBudget

_SIGN: Final = re.compile(r"[*?\[]")
_MOST: Final = 64
"""Path components, and characters of one component. Longer patterns are assumed to overlap."""


def may_meet(glob: str, other: str, budget: EvaluationBudget) -> bool:
    """Return whether a shell glob, whose `*` does not match hidden files, and a rule's pattern can match the same path.
    Both are relative to the same directory.
    """
    left, right = glob.strip("/").split("/"), other.strip("/").split("/")
    same = 0
    while same < min(len(left), len(right)) - 1 and left[same] == right[same] and not _SIGN.search(left[same]):
        same += 1
    one, two = tuple(left[same:]), tuple(right[same:])
    if not _begin_alike(one[0], two[0]):
        return False
    budget.spend(PER_CELL * sum(map(len, one)) * sum(map(len, two)))
    if len(one) > _MOST or len(two) > _MOST:
        return True
    return _paths(one, two)


def _begin_alike(one: str, other: str) -> bool:
    """Compare the literal text before the first wildcard. A name without wildcards is literal as a whole."""
    spelt, also = (_SIGN.split(name, 1)[0] for name in (one, other))
    if spelt == one and also == other:
        return one == other
    return spelt.startswith(also) or also.startswith(spelt)


@lru_cache(maxsize=4096)
def _paths(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    rows, columns = len(one), len(other)
    reach = [[False] * (columns + 1) for _ in range(rows + 1)]
    reach[rows][columns] = True
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            if i < rows and one[i] == "**":
                reach[i][j] |= reach[i + 1][j] or (j < columns and reach[i][j + 1])
            if j < columns and other[j] == "**":
                reach[i][j] |= reach[i][j + 1] or (i < rows and reach[i + 1][j])
            if i < rows and j < columns and reach[i + 1][j + 1]:
                reach[i][j] |= names_may_meet(one[i], other[j])
    return reach[0][0]


@lru_cache(maxsize=4096)
def names_may_meet(one: str, other: str) -> bool:
    """Return whether two patterns for one path component can match the same name. Patterns with brackets are assumed
    to.
    """
    if "[" in one or "[" in other or len(one) > _MOST or len(other) > _MOST:
        return True
    if other[:1] == "." and one[:1] in {"*", "?"}:
        return False
    rows, columns = len(one), len(other)
    reach = [[False] * (columns + 1) for _ in range(rows + 1)]
    reach[rows][columns] = True
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            if i < rows and one[i] == "*":
                reach[i][j] |= reach[i + 1][j] or (j < columns and reach[i][j + 1])
            if j < columns and other[j] == "*":
                reach[i][j] |= reach[i][j + 1] or (i < rows and reach[i + 1][j])
            if i < rows and j < columns and reach[i + 1][j + 1]:
                reach[i][j] |= one[i] == other[j] or "?" in {one[i], other[j]}
    return reach[0][0]
