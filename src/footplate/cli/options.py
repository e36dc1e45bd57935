"""Options that several commands have, with the same words and the same completion."""

from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    LINES = "stream-json"


Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="Which server: a profile of `footplate config`, or `local`.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
OneSession = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="A session's id; the one used last if left out.",
    ),
]
ManySessions = Annotated[list[str], typer.Argument(metavar="SESSION…", help="Ids of sessions.")]
