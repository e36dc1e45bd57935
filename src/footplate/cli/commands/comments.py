"""Defines `footplate comments`: comments on lines of a session's diff, which are sent to its agent as one message."""

from typing import Annotated, Literal

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

comments = typer.Typer(
    help="Comment on lines of a session's diff, and send that to its agent.", no_args_is_help=True, cls=GroupedHelp
)
Session = Annotated[
    str,
    typer.Option(
        *("--session", "-s"),
        metavar="ID",
        show_default=False,
        help="Session of the comment.  [default: the last used session]",
    ),
]
CommentId = Annotated[str, typer.Argument(metavar="COMMENT", help="ID of a comment, from `footplate comments ls`.")]


@comments.callback()
def group() -> None:
    """Comment on lines of a session's diff, and send that to its agent."""


@comments.command("ls")
def list_comments(
    session: options.OneSession = "last", as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """List the comments of a session, drafts of all members included, oldest first."""
    from footplate.cli.actions import comments as actions

    actions.list_comments(session, as_json=as_json, profile=profile)


@comments.command()
def add(
    path: Annotated[str, typer.Argument(metavar="FILE", help="File in the diff, as `footplate diff` names it.")],
    lines: Annotated[str, typer.Argument(metavar="LINES", help="Line number, or a range such as 12-15.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Comment.")],
    session: Session = "last",
    turn: Annotated[
        str | None, typer.Option(metavar="ID", help="The diff of this turn.  [default: all changes of the session]")
    ] = None,
    old: Annotated[bool, typer.Option("--old", help="The line numbers are those before the change.")] = False,
    project: Annotated[
        str | None,
        typer.Option("--project", "-p", metavar="ID|NAME", help="Project of the file, if there are several."),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Add a comment on lines that the diff shows, as a draft."""
    from footplate.cli.actions import comments as actions

    actions.add(
        path, lines, text, session=session, turn=turn, old=old, project=project, as_json=as_json, profile=profile
    )


@comments.command()
def edit(
    comment: CommentId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Comment.")],
    session: Session = "last",
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Replace the text of a draft of yours."""
    from footplate.cli.actions import comments as actions

    actions.edit(comment, text, session=session, as_json=as_json, profile=profile)


@comments.command()
def rm(
    comment: CommentId,
    session: Session = "last",
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Delete a draft of yours."""
    from footplate.cli.actions import comments as actions

    actions.remove(comment, session=session, as_json=as_json, profile=profile)


@comments.command()
def send(
    session: options.OneSession = "last",
    comment: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only this comment. May be repeated.  [default: all your drafts]"),
    ] = None,
    when_busy: Annotated[
        Literal["queue", "steer", "interrupt", "reject"] | None,
        typer.Option("--when-busy", metavar="WHAT", help="queue, steer, interrupt or reject.  [default: queue]"),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Send drafts to the agent, all in one message with files, lines and code. Each comment is sent once."""
    from footplate.cli.actions import comments as actions

    actions.send(session, comment, when_busy=when_busy, as_json=as_json, profile=profile)
