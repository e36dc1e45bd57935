"""Defines the session commands, such as run, attach and logs. Each command imports its implementation only when it
runs, so that every command starts quickly.
"""

import sys
from typing import Annotated, Literal

import typer

from footplate.cli import options
from footplate.cli.commands import session_options
from footplate.cli.options import OutputFormat
from footplate.domain.sessions.turns import ActivityState, SessionState, SessionStatus


def run(
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="PROMPT",
            help="The task. It is read from stdin if it is `-`, or if it is omitted and stdin is not a terminal.",
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
            help="Continue this session instead of starting one. `last` is the last used session.",
        ),
    ] = None,
    fork_at: Annotated[
        str | None,
        typer.Option(
            metavar="EVENT",
            help="Fork the session at this event (ID, position or `last`) and continue in the fork.",
        ),
    ] = None,
    agent: session_options.Agent = None,
    environment: session_options.Environment = None,
    backend: options.Backend = None,
    shell_mode: options.ShellModeOption = None,
    model: session_options.Model = None,
    harness: session_options.Harness = None,
    system: session_options.System = None,
    directory: session_options.Directory = None,
    scratch: session_options.Scratch = False,
    project: session_options.Projects = None,
    include_uncommitted: session_options.IncludeUncommitted = False,
    file: session_options.Files = None,
    inline: session_options.Inline = None,
    url: session_options.Urls = None,
    allowed_tools: session_options.AllowedTools = None,
    disallowed_tools: session_options.DisallowedTools = None,
    max_turns: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop after this number of model requests, with exit code 6.")
    ] = None,
    retry_delay: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=3600,
            metavar="SECONDS",
            help="Wait before the first retry after an error of the model provider.  [default: the server's]",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Interrupt the turn after this time, with exit code 4. 0: never.  "
            "[default: `timeout` of the profile, else 600]",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the session.  [default: the prompt's first line]")
    ] = None,
    visibility: options.VisibilityOption = None,
    team: options.TeamOption = None,
    end_when_done: session_options.EndWhenDone = False,
    background: Annotated[
        bool,
        typer.Option("--background", "-b", help="Print the session ID and exit. The session continues on the server."),
    ] = False,
    output: Annotated[
        OutputFormat,
        typer.Option("--output", "-o", metavar="FORMAT", help="text, json (the result) or stream-json (each event)."),
    ] = OutputFormat.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    previews: Annotated[
        bool, typer.Option("--previews", help="With stream-json, also print text while it is being generated.")
    ] = False,
    profile: options.Profile = None,
) -> None:
    """Send a message to an agent and watch it work until the turn ends.

    The agent's text goes to stdout, everything else to stderr. Ctrl-C interrupts the agent; a second Ctrl-C detaches
    and leaves the session running. The agent's commands run where the server's workers run: in the current directory
    with a `footplate dev` on this machine, otherwise in a directory of the session. The whole organisation can see the
    session and its files, unless you use --visibility.

    Exit codes: 0 completed, 1 failed, 2 invalid usage, 3 needs action, 4 timed out, 5 interrupted, 6 limit
    reached, 7 server unreachable, 130 detached with Ctrl-C.
    """
    from footplate.cli.actions import sessions as actions

    request = session_options.build_run_request(
        prompt=_read_prompt(prompt),
        session=session,
        fork_at=fork_at,
        background=background,
        agent=agent,
        environment=environment,
        backend=backend,
        shell_mode=shell_mode,
        model=model,
        harness=harness,
        system=system,
        max_turns=max_turns,
        retry_delay=retry_delay,
        title=title,
        directory=directory,
        scratch=scratch,
        projects=project,
        include_uncommitted=include_uncommitted,
        attachments=session_options.build_attachments(file, inline, url),
        allowed_tools=allowed_tools,
        disallowed_tools=disallowed_tools,
        visibility=visibility,
        team=team,
        end_when_done=end_when_done,
    )
    form = OutputFormat.JSON if as_json else output
    actions.run(request, form, background=background, previews=previews, timeout=timeout, profile=profile)


def attach(
    session: options.OneSession = "last",
    output: Annotated[
        OutputFormat,
        typer.Option("--output", "-o", metavar="FORMAT", help="text, json (the result) or stream-json (each event)."),
    ] = OutputFormat.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    terminal: Annotated[
        bool,
        typer.Option(
            "--terminal",
            "-t",
            help="Connect to the session's terminal, and open a shell there if no command runs on it.",
        ),
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="With --terminal: only watch, and open no shell.")
    ] = False,
    profile: options.Profile = None,
) -> None:
    """Watch a session's running turn, or replay its last one, from start to end. Exit codes are those of `run`.

    With --terminal, work in a shell inside the session's sandbox or container, and watch commands that run there.
    `exit` closes the shell; Ctrl-] detaches and leaves it open.
    """
    if read_only and not terminal:
        raise typer.BadParameter("--read-only requires --terminal.")
    if terminal:
        if as_json or output is not OutputFormat.TEXT:
            raise typer.BadParameter("--terminal has no other output format.")
        from footplate.cli.actions import terminals

        terminals.attach(session, read_only=read_only, profile=profile)
        return
    from footplate.cli.actions import sessions as actions

    actions.attach(session, OutputFormat.JSON if as_json else output, profile=profile)


def ls(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="Maximum number of sessions.")] = 20,
    activity: Annotated[
        list[ActivityState] | None,
        typer.Option(
            metavar="STATE",
            help=f"Only sessions with this activity, of the newest 1,000: {', '.join(ActivityState)}. May be repeated.",
        ),
    ] = None,
    status: Annotated[
        list[SessionStatus] | None,
        typer.Option(
            metavar="STATUS",
            help="Only sessions with this status of the API: idle, running, rescheduling, terminated. May be repeated.",
        ),
    ] = None,
    state: Annotated[
        list[SessionState] | None,
        typer.Option(metavar="STATE", help=f"Only sessions in this state: {', '.join(SessionState)}. May be repeated."),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            "--search",
            "-s",
            metavar="WORDS",
            help="Only sessions whose title, messages or paths of written files have words that begin with all these.",
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="ID", help="Only sessions that work on this project.")
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="ID", help="Only sessions of this member.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="ID", help="Only sessions of this agent.")] = None,
    harness: Annotated[str | None, typer.Option(metavar="NAME", help="Only sessions on this harness.")] = None,
    stuck: Annotated[
        bool, typer.Option("--stuck", help="Only sessions that have work and do not move, with the reason.")
    ] = False,
    include_archived: Annotated[bool, typer.Option("--all", "-a", help="Include archived sessions.")] = False,
    children_of: Annotated[
        str | None, typer.Option(metavar="SESSION", help="Only the sessions that this one has started.")
    ] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only the sessions that you have pinned.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only IDs.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List sessions, newest first. `↳` marks a fork, and `·` a session that another one started."""
    from footplate.cli.actions import sessions as actions

    actions.ls(
        limit=limit,
        statuses=status or [],
        activities=activity or [],
        filters={
            "states": [each.value for each in state or ()],
            "q": search,
            "project_id": project,
            "owner_id": owner,
            "agent_id": agent,
            "harness": harness,
            "stuck": stuck or None,
        },
        include_archived=include_archived,
        children_of=children_of,
        pinned=pinned,
        quiet=quiet,
        as_json=as_json,
        profile=profile,
    )


def show(session: options.OneSession = "last", as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show a session: its activity, owner, visibility, agent, projects, cost and turns."""
    from footplate.cli.actions import sessions as actions

    actions.show(session, as_json=as_json, profile=profile)


def logs(
    session: options.OneSession = "last",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new events until Ctrl-C.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=1, max=1000, metavar="N", help="Print only the last N events.")
    ] = None,
    show_ids: Annotated[
        bool, typer.Option("--ids", help="Print the position, ID and type of each event, for `fork --at`.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as one line of JSON.")] = False,
    profile: options.Profile = None,
) -> None:
    """Print a session's log: every message, tool call and error, oldest first."""
    from footplate.cli.actions import sessions as actions

    if follow and tail is not None:
        raise typer.BadParameter("--tail and --follow cannot be combined.")
    if show_ids and as_json:
        raise typer.BadParameter("--ids and --json cannot be combined. JSON always has the IDs and positions.")
    actions.logs(session, follow=follow, tail=tail, show_ids=show_ids, as_json=as_json, profile=profile)


def fork(
    session: options.OneSession = "last",
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="EVENT",
            help="ID or position of the last event to include, from `footplate logs --ids`.  [default: the newest]",
        ),
    ] = None,
    turn: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Include everything up to the end of this turn, from `footplate show`."),
    ] = None,
    last_tool: Annotated[
        bool, typer.Option("--last-tool", help="Include everything up to the result of the last tool call.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", metavar="NAME", help="Model of the fork.  [default: the session's model]"),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", metavar="ID", help="ID or name of another agent.")
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the fork.  [default: the session's title]")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create a session that starts with the history of another one up to an event. The original is not changed."""
    from footplate.cli.actions import sessions as actions
    from footplate.cli.actions.run import session_start

    if [at is not None, turn is not None, last_tool].count(True) > 1:
        raise typer.BadParameter("Use only one of --at, --turn and --last-tool.")
    wanted = session_start.ForkRequest(
        session=session, at=at or "last", turn=turn, last_tool=last_tool, agent=agent, model=model, title=title
    )
    actions.fork(wanted, as_json=as_json, profile=profile)


def share(
    session: options.OneSession = "last",
    visibility: options.VisibilityOption = None,
    team: options.TeamOption = None,
    owner: Annotated[
        str | None,
        typer.Option(metavar="MEMBER", help="Give the session to this member. Only administrators can use a name."),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Change who can see a session, and who owns it. Only its owner and administrators can do this."""
    from footplate.cli.actions import sessions as actions

    visibility = options.choose_visibility(visibility, team)
    if visibility is None and owner is None:
        raise typer.BadParameter("Use --visibility, --team or --owner.")
    actions.share(session, visibility=visibility, team=team, owner=owner, as_json=as_json, profile=profile)


def interrupt(
    session: options.OneSession = "last",
    thread: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Stop only this subagent. `footplate logs --json` has the IDs of threads."),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Interrupt a session's running or queued turn. Its work so far is saved. Without one, nothing is changed."""
    from footplate.cli.actions import sessions as actions

    actions.interrupt(session, thread, as_json=as_json, profile=profile)


def end(
    session: options.OneSession = "last",
    failed: Annotated[bool, typer.Option("--failed", help="The work failed.  [default: it is completed]")] = False,
    cancelled: Annotated[bool, typer.Option("--cancelled", help="The work is no longer needed.")] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for the log and `footplate show`.")] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """End a session: stop its turn, cancel its queue and release what it holds. It can be read and forked.

    An ended session accepts no more messages and steps.
    """
    from footplate.cli.actions import sessions as actions

    if failed and cancelled:
        raise typer.BadParameter("--failed and --cancelled cannot be combined.")
    outcome: Literal["completed", "failed", "cancelled"] = (
        "failed" if failed else "cancelled" if cancelled else "completed"
    )
    actions.end(session, outcome=outcome, reason=reason, as_json=as_json, profile=profile)


def archive(sessions: options.ManySessions, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Archive sessions. They remain readable but accept no more messages."""
    from footplate.cli.actions import sessions as actions

    actions.archive(sessions, as_json=as_json, profile=profile)


def rm(
    sessions: options.ManySessions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking for confirmation.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Delete sessions and all their data permanently."""
    from footplate.cli.actions import sessions as actions
    from footplate.cli.render import terminal_io

    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("Deletion is permanent and needs confirmation. Without a terminal, use --yes.")
        terminal_io.confirm(f"Delete {', '.join(sessions)} permanently?")
    actions.remove(sessions, as_json=as_json, profile=profile)


def _read_prompt(given: str | None) -> str:
    if given is None and sys.stdin.isatty():
        raise typer.BadParameter('No prompt was given. Usage: footplate run "…"', param_hint="PROMPT")
    text = sys.stdin.read() if given in {None, "-"} else given
    if not text or not text.strip():
        raise typer.BadParameter("The prompt is empty.", param_hint="PROMPT")
    return text
