"""`footplate policy`: try rules, without a server."""

from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.grouping import Grouped

app = typer.Typer(help="Try permission rules, without a server.", no_args_is_help=True, cls=Grouped)


@app.callback()
def group() -> None:
    """Try permission rules, without a server."""


@app.command()
def explain(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="A shell command, as one argument.")],
    rules: Annotated[
        list[Path] | None,
        typer.Option(
            "--rules",
            metavar="FILE",
            help="A file with rules, such as .claude/settings.json. May be repeated.  "
            "[default: .claude/settings.json and .claude/settings.local.json of the directory]",
        ),
    ] = None,
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="The working tree.", show_default="this directory")
    ] = Path(),
    as_json: options.Json = False,
) -> None:
    """Show how a command is read and which rule decides on each part of it."""
    from footplate.cli import explaining

    explaining.explain(command, rules, directory, as_json=as_json)
