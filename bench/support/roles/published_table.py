"""Reads the published tables of docs/identities.md: what each role permits, and what each route and command needs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Self

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "identities.md"
_CODE: Final = re.compile(r"`([^`]+)`")
_PATTERN: Final = re.compile(r"`([^`]+)`(?: with `([^`]+)`)?")


@dataclass(frozen=True, slots=True)
class _Rule:
    """One pattern of a row. `condition` is a field or an event type that the request contains."""

    pattern: str
    condition: str | None
    permissions: frozenset[str]
    """Empty: no key is needed."""


@dataclass(frozen=True, slots=True)
class PublishedTable:
    roles: Mapping[str, frozenset[str]]
    """The permissions of each role."""
    _routes: Sequence[_Rule]
    _commands: Sequence[_Rule]
    _restricted_keys: Sequence[_Rule]

    @classmethod
    def read(cls) -> Self:
        sections = re.split(r"^#+ (.+)$", PAGE.read_text(), flags=re.MULTILINE)
        tables = {title: _read_table(text) for title, text in zip(sections[1::2], sections[2::2], strict=True)}
        heading, *rows = tables["Roles"]
        names = [_CODE.findall(cell)[0] for cell in heading[1:]]
        roles = {
            _CODE.findall(role)[0]: frozenset(name for name, cell in zip(names, cells, strict=True) if cell == "yes")
            for role, *cells in rows
        }
        names_of_tables = ("Routes", "Commands", "Routes for restricted keys")
        return cls(roles, *(_read_rules(tables[name]) for name in names_of_tables))

    def route_permissions(self, method: str, path: str, condition: str | None = None) -> frozenset[str]:
        """Returns the permissions of which a request needs one; empty if it needs no key."""
        return _find(self._routes, f"{method} {path}", condition)

    def serves_restricted_keys(self, method: str, path: str) -> bool:
        """Returns whether the route serves keys that are restricted to projects."""
        return "yes" in _find(self._restricted_keys, f"{method} {path}", None)

    def command_permissions(self, command: str) -> frozenset[str]:
        return _find(self._commands, command, None)

    def conditions(self, method: str, path: str) -> Sequence[str]:
        """Returns the conditions under which the route needs other permissions than usual."""
        route = f"{method} {path}"
        return [rule.condition for rule in self._routes if rule.condition and fnmatchcase(route, rule.pattern)]


def _find(rules: Sequence[_Rule], name: str, condition: str | None) -> frozenset[str]:
    for rule in rules:
        if rule.condition in {None, condition} and fnmatchcase(name, rule.pattern):
            return rule.permissions
    raise LookupError(f"docs/identities.md says nothing about {name}")


def _read_rules(table: Sequence[Sequence[str]]) -> list[_Rule]:
    return [
        _Rule(pattern, condition or None, frozenset() if cell.startswith("none") else frozenset(_permissions(cell)))
        for patterns, cell in table[1:]
        for pattern, condition in _PATTERN.findall(patterns)
    ]


def _permissions(cell: str) -> list[str]:
    """Returns the permissions at the start of a cell. An explanation may follow after a full stop."""
    return _CODE.findall(cell.partition(".")[0])


def _read_table(text: str) -> list[list[str]]:
    """Returns the cells of the section's first table, without the line below its heading."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("|"):
            lines.append(line)
        elif lines:
            break
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for number, row in enumerate(rows) if number != 1]
