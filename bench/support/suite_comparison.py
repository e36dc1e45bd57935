"""Compares the test suites that a rename must not change with those of an earlier commit.

Names, docstrings, imports and the texts of generated pages may change. Input files, literals, and the number of
assertions, calls and branches may not.
"""

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
SUITES: Final = ("tests/replay", "tests/compat", "tests/security")
_PAGE_TEXTS: Final = ("tests/compat",)
"""Suites whose sentences are printed in docs/compatibility.md."""
_RENAMED: Final[Mapping[str, str]] = {"'story'": "'scenario'"}
"""Literals that are names: of a scripted model's script."""
_COUNTED: Final = (ast.Assert, ast.Compare, ast.Call, ast.Raise, ast.For, ast.AsyncFor, ast.If, ast.With, ast.AsyncWith)


def find_differences(commit: str) -> list[str]:
    found = []
    for suite in SUITES:
        before, now = dict(_files_at(commit, suite)), dict(_files_now(suite))
        found += _compare(suite, "input file", *(Counter(map(hash, _data(files))) for files in (before, now)))
        found += _compare(suite, "literal", *(_literals(suite, files) for files in (before, now)))
        found += _compare(suite, "statement", *(_statements(files) for files in (before, now)))
    return found


def _files_at(commit: str, suite: str) -> Iterator[tuple[str, bytes]]:
    names = _git("ls-tree", "-r", "--name-only", commit, suite).decode().split()
    return ((name, _git("show", f"{commit}:{name}")) for name in names)


def _files_now(suite: str) -> Iterator[tuple[str, bytes]]:
    names = _git("ls-files", suite).decode().split()
    return ((name, (ROOT / name).read_bytes()) for name in names)


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def _is_code(name: str) -> bool:
    return name.endswith(".py") and "/settings/" not in name


def _data(files: Mapping[str, bytes]) -> list[bytes]:
    return [content for name, content in files.items() if not _is_code(name)]


def _trees(files: Mapping[str, bytes]) -> Iterator[ast.Module]:
    return (ast.parse(content) for name, content in files.items() if _is_code(name))


def _literals(suite: str, files: Mapping[str, bytes]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for tree in _trees(files):
        ignored = {id(part) for node in ast.walk(tree) if _is_ignored(node) for part in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in ignored:
                literal = repr(node.value)
                if not (suite in _PAGE_TEXTS and isinstance(node.value, str) and " " in node.value):
                    counted[_RENAMED.get(literal, literal)] += 1
    return counted


def _statements(files: Mapping[str, bytes]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for tree in _trees(files):
        ignored = {id(part) for node in ast.walk(tree) if _is_ignored(node) for part in ast.walk(node)}
        counted.update(
            type(node).__name__ for node in ast.walk(tree) if isinstance(node, _COUNTED) and id(node) not in ignored
        )
    return counted


def _is_ignored(node: ast.AST) -> bool:
    """Docstrings, and marks of requirements."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement"


def _compare(suite: str, kind: str, before: Counter[Any], now: Counter[Any]) -> list[str]:
    lost = [f"{suite}: {kind} only before: {item}" for item in (before - now).elements()]
    return lost + [f"{suite}: {kind} only now: {item}" for item in (now - before).elements()]
