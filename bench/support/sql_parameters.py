"""Compares the calls of SQL statements in the source with the parameters of the statements, without running them.

A call gives a statement with named parameters exactly these names. Names that a call takes from a dictionary are known
only if a function in the same file returns that dictionary literally; `bind` checks the others at run time.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.store.database import PARAMETERS, SQL, count_parameters, load_queries

MAX_POSITIONAL: Final = 5
ROOT: Final = Path(__file__).resolve().parents[2]
_FOLDERS: Final = ("src/footplate/store", "bench", "tests/integration")
_CALL: Final = re.compile(r"\bSQL\[|\bbind\(|\.fetch(row)?\(\s*\"")
"""What a file with a call contains. Parsing every file of `bench` would take most of the time."""
_FETCHES: Final = frozenset({"fetch", "fetchrow"})


@dataclass(frozen=True, slots=True)
class StatementCall:
    query: str
    line: int
    positional: int | None
    """None: the number is not known, because the call unpacks a sequence."""
    names: frozenset[str]
    has_unknown_names: bool = False
    is_bound: bool = False
    """The call uses `bind`, or a method of the database that does."""


def count_positional() -> Mapping[str, int]:
    """Returns the number of positional parameters of each statement. A statement with names has none."""
    return {name: count_parameters(text) for name, text in load_queries().items()}


def find_long_lists() -> list[str]:
    counts = count_positional()
    return [
        *(f"{name} has {count} positional parameters" for name, count in counts.items() if count > MAX_POSITIONAL),
        *(f"{name} mixes names and numbers" for name in PARAMETERS if counts[name]),
    ]


def find_wrong_calls() -> list[str]:
    """Returns the calls in the source whose parameters differ from those of the statement."""
    return [
        f"{path.relative_to(ROOT)}:{fault}"
        for folder in _FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if _CALL.search(source := path.read_text())
        for fault in find_faults(source)
    ]


def find_faults(source: str) -> list[str]:
    return [f"{call.line}: {fault}" for call in find_calls(source) for fault in _compare(call)]


def find_calls(source: str) -> Iterator[StatementCall]:
    tree = ast.parse(source)
    literal = _find_literal_columns(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (found := _read_call(node, literal)) is not None:
            yield found


def _read_call(node: ast.Call, literal: Mapping[str, frozenset[str]]) -> StatementCall | None:
    if not node.args:
        return None
    first = node.args[0]
    is_bind = isinstance(node.func, ast.Name) and node.func.id == "bind"
    is_fetch = isinstance(node.func, ast.Attribute) and node.func.attr in _FETCHES
    if isinstance(first, ast.Constant) and (is_bind or is_fetch) and (is_bind or first.value in SQL):
        query = str(first.value)
    elif isinstance(first, ast.Subscript) and isinstance(first.value, ast.Name) and first.value.id == "SQL":
        query = str(first.slice.value) if isinstance(first.slice, ast.Constant) else ""
        if query not in SQL:
            return None
        is_fetch = False
    else:
        return None
    names = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
    unpacked = [keyword.value for keyword in node.keywords if keyword.arg is None]
    for value in unpacked:
        names |= literal.get(_called_name(value), frozenset())
    return StatementCall(
        query=query,
        line=node.lineno,
        positional=_count(node.args[1:]),
        names=frozenset(names),
        has_unknown_names=any(_called_name(value) not in literal for value in unpacked),
        is_bound=is_bind or is_fetch,
    )


def _count(arguments: Sequence[ast.expr]) -> int | None:
    count = 0
    for argument in arguments:
        if not isinstance(argument, ast.Starred):
            count += 1
        elif isinstance(argument.value, ast.Tuple) and (inner := _count(argument.value.elts)) is not None:
            count += inner
        else:
            return None
    return count


def _compare(call: StatementCall) -> Iterator[str]:
    if call.query not in SQL:
        yield f"no statement has the name {call.query}"
        return
    wanted = frozenset(PARAMETERS.get(call.query, ()))
    if not wanted:
        numbers = count_parameters(SQL[call.query])
        if call.positional is not None and call.positional != numbers:
            yield f"{call.query} has {numbers} parameters, and the call gives {call.positional}"
    elif not call.is_bound or call.positional:
        yield f"{call.query} has named parameters, and the call gives them by position"
    else:
        wrong = call.names - wanted if call.has_unknown_names else call.names ^ wanted
        if wrong:
            yield f"{call.query} and the call differ in {', '.join(sorted(wrong))}"


def _called_name(value: ast.expr) -> str:
    return value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""


def _find_literal_columns(tree: ast.Module) -> dict[str, frozenset[str]]:
    """Returns the keys of the dictionaries that functions of the module return as a literal, by function."""
    found = {}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
                keys = [key.value if isinstance(key, ast.Constant) else None for key in node.value.keys]
                if None not in keys:
                    found[function.name] = frozenset(map(str, keys))
    return found
