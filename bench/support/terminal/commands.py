"""All commands, read from the command line's own tree, so that a new one cannot be forgotten."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer.main

from footplate.cli.app import app


@dataclass(frozen=True, slots=True)
class Command:
    path: tuple[str, ...]
    options: frozenset[str]
    undocumented: tuple[str, ...]
    """What it takes and does not explain."""

    @property
    def name(self) -> str:
        return " ".join(self.path)


def every() -> list[Command]:
    """Groups among them; the first is the whole command line."""
    return list(_below(typer.main.get_command(app), ()))


def _below(command: Any, path: tuple[str, ...]) -> Iterator[Command]:
    options = frozenset(option for parameter in command.params for option in parameter.opts)
    silent = tuple(parameter.name for parameter in command.params if not getattr(parameter, "help", None))
    yield Command(path, options, silent if command.help else (*silent, "what it is for"))
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from _below(child, (*path, name))
