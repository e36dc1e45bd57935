"""Checks rules that no linter knows: vocabulary, size of packages, unfinished code, regular expressions from outside,
input and output in the domain.

A file of more than 450 lines is a warning. Everything else fails `just check`.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.regex_check import find_outside_patterns
from bench.vocabulary import find_banned_terms, find_unexplained_classes

MAX_LINES: Final = 450
MAX_ENTRIES: Final = 15
"""Modules and packages on the top level of each package directly below src/footplate."""
SOURCE: Final = Path(__file__).resolve().parent.parent / "src"
_UNFINISHED: Final = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")

_DOMAIN_IMPORTS: Final = frozenset(
    {
        *(
            "asyncio",
            "base64",
            "cel_expr_python",
            "codecs",
            "collections",
            "concurrent",
            "cronsim",
            "contextlib",
            "dataclasses",
            "datetime",
            "enum",
        ),
        *(
            "footplate",
            "functools",
            "hashlib",
            "hmac",
            "ipaddress",
            "itertools",
            "json",
            "pathlib",
            "posixpath",
            "pydantic",
        ),
        *("re", "re2", "secrets", "shlex", "sys", "time", "typing", "unicodedata", "urllib", "weakref", "zoneinfo"),
    }
)
"""`asyncio`, `contextlib` and `pathlib` are for the types of ports and for limits, `concurrent` runs a lookup function
that the caller provides, `posixpath` and `urllib.parse` parse names, `sys` has the largest integer. None of them is
enough to start a process."""
_IO_CALLS: Final = frozenset({"open", "print", "input", "exec", "eval", "__import__"})


def find_long_files(source: Path) -> list[str]:
    lengths = {path: len(path.read_text().splitlines()) for path in _list_code(source)}
    return [
        f"{path}: {length} lines (guideline: {MAX_LINES})" for path, length in lengths.items() if length > MAX_LINES
    ]


def find_unfinished_code(source: Path) -> list[str]:
    return [
        f"{path}:{number}: unfinished: {line.strip()}"
        for path in _list_code(source)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if _UNFINISHED.search(line)
    ]


def find_crowded_packages(source: Path) -> list[str]:
    found = []
    for package in sorted((source / "footplate").iterdir()):
        entries = [path for path in package.iterdir() if _is_module(path)] if package.is_dir() else []
        if len(entries) > MAX_ENTRIES:
            found.append(f"{package}: {len(entries)} modules and packages on its top level (limit: {MAX_ENTRIES})")
    return found


def find_domain_io(source: Path) -> list[str]:
    """Finds what the import contract cannot: input and output by the standard library and by builtins."""
    found: list[str] = []
    for path in sorted((source / "footplate" / "domain").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    used = [name.name for name in names if name.name.split(".")[0] not in _DOMAIN_IMPORTS]
                case ast.ImportFrom(module=str(module)) if module.split(".")[0] not in _DOMAIN_IMPORTS:
                    used = [module]
                case ast.Call(func=ast.Name(id=name)) if name in _IO_CALLS:
                    used = [f"{name}()"]
                case _:
                    used = list[str]()
            found += [f"{path}: the domain does no input or output, but uses {name}" for name in used]
    return found


def _list_code(source: Path) -> Iterator[Path]:
    return (path for path in sorted(source.rglob("*")) if path.suffix in {".py", ".sql"})


def _is_module(path: Path) -> bool:
    return path.name != "__init__.py" and (path.suffix == ".py" or (path / "__init__.py").exists())


if __name__ == "__main__":
    for warning in find_long_files(SOURCE):
        print(f"warning: {warning}")
    problems = [
        *find_unfinished_code(SOURCE),
        *find_crowded_packages(SOURCE),
        *find_domain_io(SOURCE),
        *find_outside_patterns(SOURCE),
        *find_banned_terms(),
        *find_unexplained_classes(),
    ]
    print("\n".join(problems) or "The code follows the project's rules.")
    sys.exit(1 if problems else 0)
