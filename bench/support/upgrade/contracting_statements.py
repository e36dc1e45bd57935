"""Finds the statements of a migration that code of an earlier version may not survive.

It does not find everything that can break older code, such as a stricter constraint or a trigger that raises an error.
"""

import re
from collections.abc import Sequence
from typing import Final

_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_BODY: Final = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)
_DROP: Final = re.compile(r"\bdrop\s+(?:table|view|materialized\s+view|function|sequence|type|column)\b")
_DROP_ACTION: Final = re.compile(
    r"\bdrop\s+(?!constraint\b|default\b|not\s+null\b|expression\b|identity\b|index\b|trigger\b)"
)
_RENAME: Final = re.compile(r"\brename\b")
_TYPE: Final = re.compile(r"\balter\s+(?:column\s+)?[\w\"]+\s+(?:set\s+data\s+)?type\b")
_SET_NOT_NULL: Final = re.compile(r"\bset\s+not\s+null\b")
_ADDED: Final = re.compile(
    r"\badd\s+(?:column\s+)?(?!constraint\b|check\b|foreign\b|primary\b|unique\b|exclude\b)(.*)", re.DOTALL
)


def find_contracting_statements(sql: str) -> Sequence[str]:
    """Returns statements that drop or rename something, change a type, or require a value that older code omits."""
    plain = _BODY.sub("''", _COMMENT.sub("", sql)).lower()
    statements = [" ".join(each.split()) for each in plain.split(";")]
    return [each for each in statements if _is_contracting(each)]


def _is_contracting(statement: str) -> bool:
    if _DROP.match(statement):
        return True
    if not statement.startswith("alter "):
        return False
    if _RENAME.search(statement) or _TYPE.search(statement) or _SET_NOT_NULL.search(statement):
        return True
    if not statement.startswith("alter table"):
        return False
    return any(_drops(action) or _demands_value(action) for action in _actions(statement))


def _actions(statement: str) -> Sequence[str]:
    """Returns the parts of an `alter table`, which commas outside of parentheses separate."""
    parts, depth = [""], 0
    for character in statement:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _drops(action: str) -> bool:
    return bool(_DROP_ACTION.search(action)) and not re.search(r"\balter\s+(?:column\s+)?[\w\"]+\s+drop\b", action)


def _demands_value(action: str) -> bool:
    """Whether it adds a column without a default that may not be null."""
    added = _ADDED.search(action)
    if added is None:
        return False
    return "not null" in added[1] and not re.search(r"\b(?:default|generated)\b", added[1])
