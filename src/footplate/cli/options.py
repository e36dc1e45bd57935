"""Options and arguments that several commands share."""

from enum import StrEnum
from typing import Annotated, Literal

import typer

from footplate.domain.organisations.visibility import Visibility


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    LINES = "stream-json"


Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="Profile of the server to use, from `footplate config`, or `local`.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OneSession = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        show_default=False,
        help="ID of a session, or its unique start.  [default: the last used session]",
    ),
]
VisibilityOption = Annotated[
    Visibility | None,
    typer.Option("--visibility", metavar="WHO", help="private (its owner), team (with --team) or organisation."),
]
TeamOption = Annotated[
    str | None,
    typer.Option("--team", metavar="TEAM", help="ID or name of the team that can see it. Implies --visibility team."),
]
Backend = Annotated[
    Literal["sandbox", "docker", "unsandboxed"] | None,
    typer.Option(
        metavar="NAME",
        help="Where commands run: sandbox, docker or unsandboxed, if the server offers it.  "
        "[default: that of the environment]",
    ),
]
ShellModeOption = Annotated[
    Literal["host", "container"] | None,
    typer.Option(
        "--shell-mode",
        metavar="MODE",
        help="Run the commands on the worker's host or in a container.  [default: where the backend runs them]",
    ),
]
ManySessions = Annotated[list[str], typer.Argument(metavar="SESSION…", help="IDs of sessions, or their unique starts.")]


def choose_visibility(visibility: Visibility | None, team: str | None) -> Visibility | None:
    """Returns the visibility, which is `team` if only a team is given."""
    if team is not None and visibility not in {None, Visibility.TEAM}:
        raise typer.BadParameter(f"--team cannot be combined with --visibility {visibility}.")
    if visibility is Visibility.TEAM and team is None:
        raise typer.BadParameter("Name the team with --team. `footplate teams ls` lists the teams.")
    return visibility if team is None else Visibility.TEAM
