"""Compares the test suites that a rename must not change with those of an earlier commit.

Names, docstrings, imports and the texts of generated pages may change, and tests may be added. No input file, literal,
assertion, call or branch may be lost.
"""

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SUITES: Final = ("tests/replay", "tests/compat", "tests/security")
_PAGE_TEXTS: Final = ("tests/compat",)
"""Suites whose sentences are printed in docs/compatibility.md."""
_RENAMED: Final[Mapping[str, str]] = {"'story'": "'scenario'"}
"""Literals that are names: of a scripted model's script."""
_COUNTED: Final = (ast.Assert, ast.Compare, ast.Call, ast.Raise, ast.For, ast.AsyncFor, ast.If, ast.With, ast.AsyncWith)


def find_losses(commit: str) -> list[str]:
    found: list[str] = []
    for suite in SUITES:
        before, now = _files_at(commit, suite), _files_now(suite)
        found += [
            f"{suite}: the input file {name} is missing or changed"
            for name, content in before.items()
            if not _is_code(name) and now.get(name) != content
        ]
        for kind, lost in (
            ("literal", _count_literals(suite, before) - _count_literals(suite, now)),
            ("statement", _count_statements(before) - _count_statements(now)),
        ):
            found += [f"{suite}: {kind} only before: {item}" for item in lost.elements()]
    return found


def _files_at(commit: str, suite: str) -> Mapping[str, bytes]:
    names = _git("ls-tree", "-r", "--name-only", commit, suite).decode().split()
    return {name: _git("show", f"{commit}:{name}") for name in names}


def _files_now(suite: str) -> Mapping[str, bytes]:
    return {name: (ROOT / name).read_bytes() for name in _git("ls-files", suite).decode().split()}


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def _is_code(name: str) -> bool:
    return name.endswith(".py") and "/settings/" not in name


def _count_literals(suite: str, files: Mapping[str, bytes]) -> Counter[str]:
    has_page_texts = suite in _PAGE_TEXTS
    values = [node.value for node in _list_nodes(files) if isinstance(node, ast.Constant)]
    literals = [repr(value) for value in values if not (has_page_texts and isinstance(value, str) and " " in value)]
    return Counter(_RENAMED.get(literal, literal) for literal in literals)


def _count_statements(files: Mapping[str, bytes]) -> Counter[str]:
    return Counter(type(node).__name__ for node in _list_nodes(files) if isinstance(node, _COUNTED))


def _list_nodes(files: Mapping[str, bytes]) -> Iterator[ast.AST]:
    """Yields the nodes of all modules, without docstrings and marks of requirements."""
    for name, content in files.items():
        if _is_code(name):
            nodes = list(ast.walk(ast.parse(content)))
            ignored = {id(part) for node in nodes if _is_ignored(node) for part in ast.walk(node)}
            yield from (node for node in nodes if id(node) not in ignored)


def _is_ignored(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement"
