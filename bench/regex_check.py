"""Finds patterns that might come from outside and reach Python's own engine, which can be made to try for minutes.

A pattern handed to `re` or `fnmatch` must be written in the source: a literal, constants of the module (named in
capitals), or text through `re.escape`. All else runs on `footplate.domain.text.linear_regex`.
"""

import ast
from pathlib import Path
from typing import Final

_FUNCTIONS: Final = {
    "re": {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"},
    "fnmatch": {"fnmatch", "fnmatchcase", "filter", "translate"},
}
_PATTERN_SECOND: Final = {"fnmatch", "fnmatchcase", "filter"}
OURS: Final = {
    "proxy/provider_wire_formats.py": "a table of that module",
    "gate/shell/programs/program_table.py": "a table of that module",
    "gate/shell/programs/mini_languages.py": "made of constants by a function of that module",
}
"""Files with patterns that this check cannot follow, and why they are not from outside."""


def find_outside_patterns(source: Path) -> list[str]:
    found: list[str] = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if any(name.endswith(known) for known in OURS):
            continue
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        found += [
            f"{path}:{call.lineno}: this pattern may come from outside: use domain/text/linear_regex.py"
            for call in calls
            if (pattern := _pattern(call)) is not None and not _is_constant(pattern)
        ]
    return found


def _pattern(call: ast.Call) -> ast.expr | None:
    """The pattern that a call hands to one of the engines."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        module, name = function.value.id, function.attr
    elif isinstance(function, ast.Name) and function.id in _FUNCTIONS["fnmatch"] - {"filter"}:
        module, name = "fnmatch", function.id
    else:
        return None
    if name not in _FUNCTIONS.get(module, ()):
        return None
    position = 1 if name in _PATTERN_SECOND else 0
    return call.args[position] if len(call.args) > position else None


def _is_constant(pattern: ast.expr) -> bool:
    match pattern:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name.isupper()
        case ast.JoinedStr(values=values):
            return all(map(_is_constant, values))
        case ast.FormattedValue(value=value):
            return _is_constant(value)
        case ast.BinOp(left=first, right=second):
            return _is_constant(first) and _is_constant(second)
        case _:
            return ast.unparse(pattern).startswith("re.escape(")
