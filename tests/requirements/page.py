"""Writes docs/requirements.md: each requirement, its state, and the tests that are marked with it.

`--check` fails if the page is out of date, a requirement that is done has no test, a test names an unknown one, or
docs/source-requirements.md names an unknown one or omits one.
"""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.generated_file import ROOT, write_or_check

PAGE: Final = ROOT / "docs" / "requirements.md"
SOURCES: Final = ROOT / "docs" / "source-requirements.md"
_CODE: Final = re.compile(r"[A-Z]\d+")
_FILE: Final = Path(__file__).with_name("requirements.toml")
_HEAD: Final = """\
# Requirements

This page lists what Footplate is required to do, how far each requirement is met, and the tests that show it. **done**
requirements have at least one test; CI fails otherwise. **partial** and **missing** ones say what is not there yet.
[source-requirements.md](source-requirements.md) shows what each of them was derived from.

`just requirements` writes this page.
"""

Tests = Mapping[str, Sequence[str]]


def find_tests(root: Path = ROOT / "tests") -> Tests:
    """Returns the tests marked with each requirement, as `path::name`; a marked module counts as one test."""
    found = defaultdict(list)
    for path in sorted(root.rglob("test_*.py")):
        for requirement, name in _marked(ast.parse(path.read_text())):
            found[requirement].append(path.relative_to(root.parent).as_posix() + (f"::{name}" if name else ""))
    return found


def _marked(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from ((requirement, node.name) for requirement in _requirements_in(decorator))
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        ):
            yield from ((requirement, "") for requirement in _requirements_in(node.value))


def _requirements_in(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
            yield from (str(argument.value) for argument in node.args if isinstance(argument, ast.Constant))


def find_sources(page: str) -> frozenset[str]:
    """Returns the requirements in the second column of the tables."""
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    return frozenset(code for row in rows for code in _CODE.findall(row[2]))


def load_groups() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text())


def list_requirements(groups: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    """Returns the requirements of all groups by their keys."""
    return {key: entry for group in groups.values() for key, entry in group.items() if key != "title"}


def find_problems(groups: Mapping[str, Any], tests: Tests, sources: frozenset[str]) -> list[str]:
    known = list_requirements(groups)
    differing = [f"{key} is only in one of requirements.toml and {SOURCES.name}." for key in sorted(sources ^ {*known})]
    untested = [key for key, entry in known.items() if entry["state"] == "done" and not tests.get(key)]
    return (
        differing
        + [f"{key} is marked done and has no test." for key in untested]
        + [
            f"{key} is not in requirements.toml, but {names[0]} is marked with it."
            for key, names in tests.items()
            if key not in known
        ]
    )


def render(groups: Mapping[str, Any], tests: Tests) -> str:
    parts = [_HEAD]
    for group in groups.values():
        rows = [_row(key, entry, tests.get(key, ())) for key, entry in group.items() if key != "title"]
        parts.append(f"\n## {group['title']}\n\n| | requirement | state | tests |\n|---|---|---|---|\n{''.join(rows)}")
    return "".join(parts)


def _row(key: str, entry: Mapping[str, str], tests: Sequence[str]) -> str:
    state = f"{entry['state']}: {entry['gap']}" if "gap" in entry else entry["state"]
    return f"| {key} | {entry['text']} | {state} | {'<br>'.join(map(_link, tests))} |\n"


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[{name or Path(path).stem}](../{path})"


def main() -> None:
    groups, tests = load_groups(), find_tests()
    if problems := find_problems(groups, tests, find_sources(SOURCES.read_text())):
        sys.exit("\n".join(problems))
    write_or_check(PAGE, render(groups, tests), recipe="requirements")


if __name__ == "__main__":
    main()
