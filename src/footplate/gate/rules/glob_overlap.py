"""Checks whether two glob patterns can match the same path. The gate needs this when a command names files by a glob
and a rule forbids some files.
"""

import re
from functools import lru_cache
from typing import Final

from footplate.gate.rules.evaluation_budget import PER_CELL, EvaluationBudget

_WILDCARD: Final = re.compile(r"[*?\[]")
_MAX_LENGTH: Final = 64
"""Path components, and characters of one component. Longer patterns are assumed to overlap."""


def globs_may_overlap(glob: str, other: str, budget: EvaluationBudget) -> bool:
    """Return whether a shell glob, whose `*` does not match hidden files, and a rule's pattern can match the same path.
    Both are relative to the same directory.
    """
    glob_components, other_components = glob.strip("/").split("/"), other.strip("/").split("/")
    shared = 0
    while (
        shared < min(len(glob_components), len(other_components)) - 1
        and glob_components[shared] == other_components[shared]
        and not _WILDCARD.search(glob_components[shared])
    ):
        shared += 1
    one, two = tuple(glob_components[shared:]), tuple(other_components[shared:])
    if not _share_prefix(one[0], two[0]):
        return False
    budget.spend(PER_CELL * sum(map(len, one)) * sum(map(len, two)))
    if len(one) > _MAX_LENGTH or len(two) > _MAX_LENGTH:
        return True
    return _paths_may_overlap(one, two)


def _share_prefix(one: str, other: str) -> bool:
    """Compare the literal text before the first wildcard. A name without wildcards is literal as a whole."""
    literal, other_literal = (_WILDCARD.split(name, 1)[0] for name in (one, other))
    if literal == one and other_literal == other:
        return one == other
    return literal.startswith(other_literal) or other_literal.startswith(literal)


@lru_cache(maxsize=4096)
def _paths_may_overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    rows, columns = len(one), len(other)
    overlaps = [[False] * (columns + 1) for _ in range(rows + 1)]
    overlaps[rows][columns] = True
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            if i < rows and one[i] == "**":
                overlaps[i][j] |= overlaps[i + 1][j] or (j < columns and overlaps[i][j + 1])
            if j < columns and other[j] == "**":
                overlaps[i][j] |= overlaps[i][j + 1] or (i < rows and overlaps[i + 1][j])
            if i < rows and j < columns and overlaps[i + 1][j + 1]:
                overlaps[i][j] |= names_may_overlap(one[i], other[j])
    return overlaps[0][0]


@lru_cache(maxsize=4096)
def names_may_overlap(one: str, other: str) -> bool:
    """Return whether two patterns for one path component can match the same name. Patterns with brackets are assumed
    to.
    """
    if "[" in one or "[" in other or len(one) > _MAX_LENGTH or len(other) > _MAX_LENGTH:
        return True
    if other[:1] == "." and one[:1] in {"*", "?"}:
        return False
    rows, columns = len(one), len(other)
    overlaps = [[False] * (columns + 1) for _ in range(rows + 1)]
    overlaps[rows][columns] = True
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            if i < rows and one[i] == "*":
                overlaps[i][j] |= overlaps[i + 1][j] or (j < columns and overlaps[i][j + 1])
            if j < columns and other[j] == "*":
                overlaps[i][j] |= overlaps[i][j + 1] or (i < rows and overlaps[i + 1][j])
            if i < rows and j < columns and overlaps[i + 1][j + 1]:
                overlaps[i][j] |= one[i] == other[j] or "?" in {one[i], other[j]}
    return overlaps[0][0]
