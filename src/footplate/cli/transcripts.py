"""The commands that move conversations of Claude Code. What they need they import when they are called."""

from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH…",
        exists=True,
        help="A transcript (.jsonl), a project's directory of them, or ~/.claude/projects as a whole.",
    ),
]


def import_(
    paths: Files,
    agent: Annotated[
        str | None,
        typer.Option("--agent", "-a", metavar="ID", help="Id or name of an agent to go on with.  [default: as `run`]"),
    ] = None,
    environment: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of an environment.  [default: the server's own]")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="NAME", help="A model to go on with.")] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            "-C",
            metavar="DIR",
            exists=True,
            file_okay=False,
            resolve_path=True,
            help="Go on there, on a `footplate dev` of this machine.  [default: a directory of the session's own]",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the session.  [default: the transcript's own]")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Make sessions of Claude Code's own transcripts. The same transcript again is the same session."""
    from footplate.cli import moving, starting

    request = starting.Request(
        prompt="",
        agent=agent,
        environment=environment,
        model=model,
        title=title,
        directory=str(directory) if directory else None,
        insists=directory is not None,
    )
    moving.import_(paths, request, as_json=as_json, profile=profile)


def pull(
    session: options.OneSession = "last",
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            exists=True,
            file_okay=False,
            resolve_path=True,
            help="Where you will go on with it.  [default: the current directory]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a transcript that has lines of its own.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Hand a session back to Claude Code on this machine, where `claude --resume` goes on with it."""
    from footplate.cli import moving

    moving.pull(session, to or Path.cwd(), force=force, as_json=as_json, profile=profile)
