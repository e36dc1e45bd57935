"""Lists all commands from the command line's own definition, so that a new one is covered automatically."""

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
    """Parameters without a help text."""

    @property
    def name(self) -> str:
        return " ".join(self.path)


def list_commands() -> list[Command]:
    """Returns all commands and groups; the first is the whole command line."""
    return list(_walk_commands(typer.main.get_command(app), ()))


def _walk_commands(command: Any, path: tuple[str, ...]) -> Iterator[Command]:
    options = frozenset(option for parameter in command.params for option in parameter.opts)
    undocumented = tuple(parameter.name for parameter in command.params if not getattr(parameter, "help", None))
    yield Command(path, options, undocumented if command.help else (*undocumented, "its purpose"))
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from _walk_commands(child, (*path, name))
