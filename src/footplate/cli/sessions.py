"""The commands that work with sessions. What they need they import when they are called."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.options import Format


def run(
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="PROMPT", help="What to do. `-`, or nothing with a pipe before it, reads it from stdin."
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            "-s",
            "--resume",
            "-r",
            metavar="ID",
            help="Go on in this session instead of starting one; `last` is the one used last.",
        ),
    ] = None,
    fork_at: Annotated[
        str | None,
        typer.Option(
            metavar="EVENT",
            help="Go on in a fork of --session, else of the one used last, at this event (id, position or `last`).",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            "-a",
            metavar="ID",
            help="Id or name of an agent.  [default: footplate-cli, made on first use]",
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Id of an environment.  [default: the server's own]",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="Such as claude-sonnet-5 or openai:gpt-5.1.")
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="claude (Claude Code), native or another of the server's.  [default: claude for Claude models]",
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="System prompt, instead of the agent's own.")
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
            help="Work there, on a `footplate dev` of this machine.  [default: the current one]",
        ),
    ] = None,
    scratch: Annotated[
        bool, typer.Option("--scratch", help="Work in a new directory of the session's own instead.")
    ] = False,
    project: Annotated[
        list[str] | None,
        typer.Option(
            "--project",
            "-p",
            metavar="PATH|ID",
            help="Work in a tree of this repository, which itself is not touched. May be repeated: others lie beside.",
        ),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="PATH|URL|ID",
            help="Put this file into the session's tree, and tell the agent where it is. May be repeated.",
        ),
    ] = None,
    inline: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH|URL|ID", help="Show this image, PDF or text to the model itself. May be repeated."),
    ] = None,
    allowed_tools: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Only these tools, such as read,grep or Read,Grep. May be repeated."),
    ] = None,
    disallowed_tools: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Without these tools. May be repeated.")
    ] = None,
    max_turns: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Ask the model at most so many times; then exit code 6.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, metavar="SECONDS", help="Interrupt it after so long; then exit code 4.")
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the session.  [default: the prompt's first line]")
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", "-b", help="Print the session's id and return; it goes on on the server.")
    ] = False,
    output: Annotated[
        Format,
        typer.Option("--output", "-o", metavar="FORMAT", help="text, json (the result) or stream-json (each event)."),
    ] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    previews: Annotated[
        bool, typer.Option("--previews", help="With stream-json: text while it is being written, too.")
    ] = False,
    profile: options.Profile = None,
) -> None:
    """Do one thing: send a message to an agent and watch it work, from the first word to the last.

    What the agent says goes to stdout, everything else to stderr. Ctrl-C interrupts the agent; a second one leaves it
    running. Commands of the agent run where the server's workers run: in this directory if that is a `footplate dev`
    on this machine, else in one of the session's own.

    Exit codes: 0 completed, 1 failed, 2 wrong command line, 3 needs action, 4 timed out, 5 interrupted, 6 limit
    reached, 7 server unreachable, 130 left by Ctrl-C.
    """
    from footplate.cli import acting, starting, tooling

    try:
        limit = tooling.Limit(tooling.names(allowed_tools or ()), tooling.names(disallowed_tools or ()))
    except tooling.NotEnforced as error:
        raise typer.BadParameter(str(error)) from None
    if (session or fork_at) and (limit or directory or project or harness):
        raise typer.BadParameter(
            "What a session works on, and with, is chosen when it begins: not with --session or --fork-at."
        )
    if project and (directory or scratch):
        raise typer.BadParameter("A session works on projects, or in a directory: --project goes without the others.")
    request = starting.Request(
        prompt=_prompt(prompt),
        session=session or ("last" if fork_at else None),
        fork_at=fork_at,
        background=background,
        agent=agent,
        environment=environment,
        model=model,
        harness=harness,
        system=system,
        max_turns=max_turns,
        title=title,
        directory=None if scratch else str(directory or Path.cwd()),
        insists=directory is not None,
        projects=tuple(project or ()),
        files=tuple(file or ()),
        inline=tuple(inline or ()),
        limit=limit,
    )
    form = Format.JSON if as_json else output
    acting.run(request, form, background=background, previews=previews, timeout=timeout, profile=profile)


def attach(
    session: options.OneSession = "last",
    output: Annotated[
        Format,
        typer.Option("--output", "-o", metavar="FORMAT", help="text, json (the result) or stream-json (each event)."),
    ] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    profile: options.Profile = None,
) -> None:
    """Watch a session's running turn from its beginning to its end, or the last one again. Exit codes as of `run`."""
    from footplate.cli import acting

    acting.attach(session, Format.JSON if as_json else output, profile=profile)


def ls(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="How many at most.")] = 20,
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="STATUS", help="Only idle, running or rescheduling ones. May be repeated."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Archived ones too.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Ids alone.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List sessions, newest first."""
    from footplate.cli import acting

    acting.ls(limit=limit, statuses=status or [], every=every, quiet=quiet, as_json=as_json, profile=profile)


def show(session: options.OneSession = "last", as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show a session: its agent, its status, what it cost, its turns."""
    from footplate.cli import acting

    acting.show(session, as_json=as_json, profile=profile)


def logs(
    session: options.OneSession = "last",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens, until Ctrl-C.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=1, max=1000, metavar="N", help="Only the last so many events.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Each event as it is in the log, one on a line.")] = False,
    profile: options.Profile = None,
) -> None:
    """Print a session's log: every message, tool call and error, oldest first."""
    from footplate.cli import acting

    if follow and tail is not None:
        raise typer.BadParameter("--tail and --follow do not go together.")
    acting.logs(session, follow=follow, tail=tail, as_json=as_json, profile=profile)


def fork(
    session: options.OneSession = "last",
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="EVENT",
            help="Id or position of the event that the fork's history ends with; `footplate logs --json` has ids.",
        ),
    ] = "last",
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="Another model than the session's own.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", metavar="ID", help="Id or name of another agent.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="For lists.  [default: the session's own]")] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Fork a session at an event: a new one that begins with its history up to there. The session is not touched."""
    from footplate.cli import acting, starting

    wanted = starting.Fork(session=session, at=at, agent=agent, model=model, title=title)
    acting.fork(wanted, as_json=as_json, profile=profile)


def interrupt(
    session: options.OneSession = "last", as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Interrupt a session's running turn. What it did so far is kept; an idle session is left as it is."""
    from footplate.cli import acting

    acting.interrupt(session, as_json=as_json, profile=profile)


def archive(sessions: options.ManySessions, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Archive sessions: they can be read, and take no more messages."""
    from footplate.cli import acting

    acting.archive(sessions, as_json=as_json, profile=profile)


def rm(
    sessions: options.ManySessions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Delete sessions for good, with all that they hold."""
    from footplate.cli import acting, output

    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("Deleting is for good. Say --yes where nobody can be asked.")
        output.confirm(f"Delete {', '.join(sessions)} for good?")
    acting.remove(sessions, as_json=as_json, profile=profile)


def _prompt(given: str | None) -> str:
    if given is None and sys.stdin.isatty():
        raise typer.BadParameter('What should it do? footplate run "…"', param_hint="PROMPT")
    text = sys.stdin.read() if given in {None, "-"} else given
    if not text or not text.strip():
        raise typer.BadParameter("The prompt is empty.", param_hint="PROMPT")
    return text
