"""Options and arguments that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer


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
        help="ID of a session, or its unique start.  [default: the last used session]",
    ),
]
ManySessions = Annotated[list[str], typer.Argument(metavar="SESSION…", help="IDs of sessions, or their unique starts.")]
