"""Finds banned words in names, and classes of the domain that the glossary does not explain.

bench/vocabulary.toml lists the words and the exemptions.
"""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_FILE: Final = Path(__file__).with_suffix(".toml")
_CHECKED: Final = ("src", "tests", "bench")
_BUILD: Final = "src/footplate/dashboard/"
_NOT_CHECKED: Final = ("src/footplate/gate/shell/", "/migrations/", "/histories/", "bench/results/", _BUILD)
_TERM: Final = re.compile(r"^\*\*([^*]+)\*\*", re.MULTILINE)
_TERM_IN_NAME: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def find_banned_terms(root: Path = ROOT, *, exempt: Mapping[str, str] | None = None) -> list[str]:
    """Returns a line for each identifier or file name with a banned word, and for each exemption without a use."""
    vocabulary = tomllib.loads(_FILE.read_text())
    banned = vocabulary["banned"]
    exempt = vocabulary["exempt"] if exempt is None else exempt
    found: list[str] = []
    used: set[str] = set()
    for path in _list_files(root):
        if path in vocabulary["exempt_files"]:
            continue
        for line, name in _names_of(root / path):
            for term in _split(name) & banned.keys():
                if name in exempt:
                    used.add(name)
                else:
                    found.append(f"{path}:{line}: {name!r} has the word {term!r}: use {banned[term]}")
    unused = [f"{_FILE.name}: {name!r} is exempt but not used" for name in exempt if name not in used]
    return found + unused


def _list_files(root: Path) -> Iterator[str]:
    for directory in _CHECKED:
        for path in sorted((root / directory).rglob("*")):
            relative = path.relative_to(root).as_posix()
            if (
                path.is_file()
                and "__pycache__" not in path.parts
                and not any(part in relative for part in _NOT_CHECKED)
            ):
                yield relative


def _names_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the file's name without its suffix, and the line and name of every definition in it."""
    yield 0, path.name.partition(".")[0]
    if path.suffix != ".py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def _split(name: str) -> set[str]:
    return {term.lower() for term in _TERM_IN_NAME.findall(name)}


def find_unexplained_classes(root: Path = ROOT) -> list[str]:
    """Returns a line for each public class of the domain whose name is no term of docs/glossary.md.

    `StoredSnapshot` is explained by "stored snapshot", and by "snapshot", whose kind it is.
    """
    terms = {term.lower() for term in _TERM.findall((root / "docs" / "glossary.md").read_text())}
    exceptions = set(tomllib.loads(_FILE.read_text())["not_in_glossary"])
    found: list[str] = []
    unexplained: set[str] = set()
    for path in sorted((root / "src" / "footplate" / "domain").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            name = " ".join(_TERM_IN_NAME.findall(node.name)).lower()
            if not any(name == term or name.endswith(f" {term}") for term in terms):
                unexplained.add(node.name)
                if node.name not in exceptions:
                    found.append(
                        f"{path.relative_to(root)}:{node.lineno}: docs/glossary.md has no term for {node.name}"
                    )
    unused = [
        f"{_FILE.name}: {name} has a term in the glossary, or does not exist" for name in exceptions - unexplained
    ]
    return found + sorted(unused)
