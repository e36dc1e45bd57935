"""Defines `footplate import` and `pull`, which exchange transcripts with Claude Code. Each command imports its
implementation only when it runs, so that every command starts quickly.
"""

from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH…",
        exists=True,
        help="A transcript (.jsonl), a project's directory of transcripts, or ~/.claude/projects.",
    ),
]


def import_transcripts(
    paths: Files,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            "-a",
            metavar="ID",
            help="ID or name of the agent that continues the session.  [default: the same as for `run`]",
        ),
    ] = None,
    environment: Annotated[
        str | None, typer.Option(metavar="ID", help="ID of an environment.  [default: the server's default]")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="Model that continues the session.")
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            "-C",
            metavar="DIR",
            exists=True,
            file_okay=False,
            resolve_path=True,
            help="Working directory of the session. Requires `footplate dev` on this machine.  "
            "[default: a new directory for the session]",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the session.  [default: the transcript's title]")
    ] = None,
    visibility: options.VisibilityOption = None,
    team: options.TeamOption = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Import Claude Code transcripts as sessions. Importing a transcript again returns the same session."""
    from footplate.cli.actions import transcripts
    from footplate.cli.actions.run import session_start

    request = session_start.RunRequest(
        prompt="",
        agent=agent,
        environment=environment,
        model=model,
        title=title,
        directory=str(directory) if directory else None,
        requires_directory=directory is not None,
        visibility=options.choose_visibility(visibility, team),
        team=team,
    )
    transcripts.import_transcripts(paths, request, as_json=as_json, profile=profile)


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
            help="Directory where you will continue the session.  [default: the current directory]",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an existing transcript that has lines that the session does not have."),
    ] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Save a session as a Claude Code transcript on this machine. `claude --resume` continues it."""
    from footplate.cli.actions import transcripts

    transcripts.pull_transcript(session, to or Path.cwd(), force=force, as_json=as_json, profile=profile)
