"""Options of the commands that create a session, `run` and `queue run`, and the request that they become."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from footplate.cli import options
from footplate.domain.organisations.visibility import Visibility

if TYPE_CHECKING:
    from footplate.cli.actions.run.message_content import MessageAttachments
    from footplate.cli.actions.run.session_start import RunRequest

Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        "-a",
        metavar="ID",
        help="ID or name of an agent.  [default: footplate-cli, created on first use]",
    ),
]
Environment = Annotated[
    str | None, typer.Option(metavar="ID", help="ID of an environment.  [default: the server's default]")
]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="NAME", help="Model, such as claude-sonnet-5 or openai:gpt-5.1."),
]
Harness = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="claude (Claude Code), native, or another harness of the server.  [default: claude for Claude models]",
    ),
]
System = Annotated[str | None, typer.Option(metavar="TEXT", help="System prompt. Replaces the agent's system prompt.")]
Directory = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        "-C",
        metavar="DIR",
        exists=True,
        file_okay=False,
        resolve_path=True,
        help="Working directory. Requires `footplate dev` on this machine.  [default: the current directory]",
    ),
]
Scratch = Annotated[bool, typer.Option("--scratch", help="Work in a new directory that belongs to the session.")]
Projects = Annotated[
    list[str] | None,
    typer.Option(
        "--project",
        "-p",
        metavar="PATH|ID|NAME",
        help="Work in a copy of this repository. May be repeated; further projects are placed next to the first.",
    ),
]
IncludeUncommitted = Annotated[
    bool,
    typer.Option(
        "--include-uncommitted", help="Start from the files of --project as they are now, not from the last commit."
    ),
]
EndWhenDone = Annotated[
    bool, typer.Option("--end-when-done", help="End the session when nothing is left in its queue.")
]
AllowedTools = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Enable only these tools, such as read,grep or Read,Grep. May be repeated."),
]
DisallowedTools = Annotated[
    list[str] | None, typer.Option(metavar="NAMES", help="Disable these tools. May be repeated.")
]


Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        metavar="PATH|URL|ID",
        help="Put this file into the session's working tree and tell the agent its path. project:PATH is a file that "
        "is there already. May be repeated.",
    ),
]
Inline = Annotated[
    list[str] | None,
    typer.Option(
        "--inline",
        metavar="PATH|URL|ID",
        help="Send this file to the model: an image, PDF, text, audio or video. May be repeated.",
    ),
]
Urls = Annotated[
    list[str] | None,
    typer.Option("--url", metavar="URL", help="Let the model's provider fetch this image or PDF. May be repeated."),
]


def build_attachments(
    files: list[str] | None, inline: list[str] | None, urls: list[str] | None
) -> "MessageAttachments":
    from footplate.cli.actions.run.message_content import MessageAttachments

    return MessageAttachments(files or (), inline or (), urls or ())


def build_run_request(
    *,
    prompt: str = "",
    session: str | None = None,
    fork_at: str | None = None,
    directory: Path | None,
    scratch: bool,
    projects: list[str] | None,
    include_uncommitted: bool,
    allowed_tools: list[str] | None,
    disallowed_tools: list[str] | None,
    harness: str | None,
    visibility: Visibility | None,
    team: str | None,
    end_when_done: bool = False,
    **fields: Any,
) -> "RunRequest":
    """Returns the request for a new or existing session. Raises `typer.BadParameter` for options that contradict."""
    from footplate.cli.actions.run import session_start, tool_selection

    try:
        limit = tool_selection.ToolLimit(
            tool_selection.parse_tool_names(allowed_tools or ()),
            tool_selection.parse_tool_names(disallowed_tools or ()),
        )
    except tool_selection.UnsupportedToolRule as error:
        raise typer.BadParameter(str(error)) from None
    visibility = options.choose_visibility(visibility, team)
    if (session or fork_at) and visibility:
        raise typer.BadParameter("To change who can see an existing session, use `footplate share`.")
    if (session or fork_at) and end_when_done:
        raise typer.BadParameter("--end-when-done is for new sessions. To end an existing one, use `footplate end`.")
    if (session or fork_at) and (limit or directory or projects or harness):
        raise typer.BadParameter(
            "The directory, projects, tools and harness of a session cannot be changed. "
            "Omit these options, or omit --session and --fork-at."
        )
    if (session or fork_at) and fields.get("backend"):
        raise typer.BadParameter("The backend of a session cannot be changed. For one run, use --shell-mode.")
    if projects and (directory or scratch):
        raise typer.BadParameter("--project cannot be combined with --directory or --scratch.")
    if include_uncommitted and not projects:
        raise typer.BadParameter("--include-uncommitted requires --project.")
    return session_start.RunRequest(
        prompt=prompt,
        session=session or ("last" if fork_at else None),
        fork_at=fork_at,
        harness=harness,
        directory=None if scratch else str(directory or Path.cwd()),
        requires_directory=directory is not None,
        projects=tuple(projects or ()),
        include_uncommitted=include_uncommitted,
        tool_limit=limit,
        visibility=visibility,
        team=team,
        end_when_done=end_when_done,
        **fields,
    )
