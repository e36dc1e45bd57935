"""Defines `footplate steps`, `play`, `pause`, `next` and `queue run`: the steps in a session's queue. Each command
imports its implementation only when it runs, so that every command starts quickly.
"""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from footplate.cli import options
from footplate.cli.commands import session_options
from footplate.cli.commands.help_formatter import GroupedHelp
from footplate.domain.sessions.steps import OnFailure

steps = typer.Typer(
    help="Show and change the steps in a session's queue.", no_args_is_help=True, cls=GroupedHelp, rich_markup_mode=None
)
queue = typer.Typer(help="Run a file of steps.", no_args_is_help=True, cls=GroupedHelp, rich_markup_mode=None)

MAX_ATTEMPTS: Final = 20
TEXT_FIELDS: Final = {
    "shell": "command",
    "prompt": "content",
    "external": "instructions",
    "merge": "into",
    "push": "branch",
}
"""The options that say what a step does, and the fields of the API."""


class ResultStatus(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


Step = Annotated[
    str, typer.Argument(metavar="STEP", help="Name or ID of a step, or the end of its ID as `steps ls` prints it.")
]
Session = Annotated[
    str,
    typer.Option("--session", "-s", metavar="ID", help="Session of the step.  [default: the last used session]"),
]
Shell = Annotated[str | None, typer.Option(metavar="COMMAND", help="A command, run without a model. `-` reads stdin.")]
Prompt = Annotated[str | None, typer.Option(metavar="TEXT", help="A message to the agent. `-` reads stdin.")]
External = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Work for a program or person: the session waits for `footplate steps result`."),
]
Merge = Annotated[
    str | None, typer.Option(metavar="BRANCH", help="Merge the session's work into a branch of its project.")
]
Push = Annotated[str | None, typer.Option(metavar="BRANCH", help="Push the session's work as a branch to its project.")]
Message = Annotated[
    str | None, typer.Option("--message", "-m", metavar="TEXT", help="Commit message, with --merge or --push.")
]
Project = Annotated[
    str | None, typer.Option(metavar="ID", help="Project to deliver, if the session works on several projects.")
]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="Name, with which later steps refer to the result.")]
Condition = Annotated[
    str | None,
    typer.Option("--if", metavar="CONDITION", help="CEL expression; the step is skipped if it is false."),
]
Policy = Annotated[
    OnFailure | None,
    typer.Option("--on-failure", metavar="POLICY", help="stop (pause the session), continue, or retry."),
]
Attempts = Annotated[
    int | None, typer.Option(min=1, max=MAX_ATTEMPTS, metavar="N", help="Attempts of a step with retry.")
]
Timeout = Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help="Time limit of the step.")]
EndsSession = Annotated[
    bool | None,
    typer.Option("--ends-session/--no-ends-session", help="The session ends with the step, completed or failed."),
]
InTerminal = Annotated[
    bool | None,
    typer.Option(
        "--terminal/--no-terminal",
        help="With --shell: run the command on the session's terminal (see `attach --terminal`).",
    ),
]
Before = Annotated[str | None, typer.Option(metavar="STEP", help="Pending step that comes after it.")]


@steps.command("ls")
def list_steps(
    session: options.OneSession = "last", as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """List the steps of a session in the order of its queue, and whether it plays or is paused."""
    from footplate.cli.actions import steps as actions

    actions.list_steps(session, as_json=as_json, profile=profile)


@steps.command("add")
def add(
    session: options.OneSession = "last",
    shell: Shell = None,
    prompt: Prompt = None,
    external: External = None,
    merge: Merge = None,
    push: Push = None,
    message: Message = None,
    project: Project = None,
    name: Name = None,
    condition: Condition = None,
    on_failure: Policy = None,
    attempts: Attempts = None,
    timeout: Timeout = None,
    ends_session: EndsSession = None,
    terminal: InTerminal = None,
    file: session_options.Files = None,
    inline: session_options.Inline = None,
    url: session_options.Urls = None,
    shell_mode: options.ShellModeOption = None,
    before: Before = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Add a step to the end of the queue, or before another pending step. Prints its ID."""
    from footplate.cli.actions import steps as actions

    texts = _read_texts(shell=shell, prompt=prompt, external=external, merge=merge, push=push)
    if len(texts) != 1:
        raise typer.BadParameter("Use exactly one of --shell, --prompt, --external, --merge and --push.")
    if (message or project) and not (merge or push):
        raise typer.BadParameter("--message and --project require --merge or --push.")
    if attempts is not None and on_failure is not OnFailure.RETRY:
        raise typer.BadParameter("--attempts requires --on-failure retry.")
    if terminal is not None and shell is None:
        raise typer.BadParameter("--terminal requires --shell.")
    attachments = session_options.build_attachments(file, inline, url)
    if attachments and prompt is None:
        raise typer.BadParameter("--file, --inline and --url require --prompt.")
    if shell_mode is not None and shell is None and prompt is None:
        raise typer.BadParameter("--shell-mode requires --shell or --prompt.")
    (kind, text), *_ = texts.items()
    sent = {
        "message": message,
        "project_id": project,
        "name": name,
        "condition": condition,
        "on_failure": on_failure,
        "max_attempts": attempts,
        "timeout_seconds": timeout,
        "ends_session": ends_session,
        "terminal": terminal,
        **({"shell_mode": shell_mode} if shell is not None else {}),
        **({"overrides": {"shell_mode": shell_mode}} if prompt is not None and shell_mode else {}),
    }
    step = {"kind": kind, TEXT_FIELDS[kind]: text, **{key: value for key, value in sent.items() if value is not None}}
    actions.add_step(session, step, attachments, before=before, as_json=as_json, profile=profile)


@steps.command("show")
def show(step: Step, session: Session = "last", as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show a step and its result."""
    from footplate.cli.actions import steps as actions

    actions.show_step(step, session=session, as_json=as_json, profile=profile)


@steps.command("edit")
def edit(
    step: Step,
    shell: Shell = None,
    prompt: Prompt = None,
    external: External = None,
    merge: Merge = None,
    push: Push = None,
    message: Message = None,
    project: Project = None,
    name: Name = None,
    condition: Condition = None,
    on_failure: Policy = None,
    attempts: Attempts = None,
    timeout: Timeout = None,
    ends_session: EndsSession = None,
    terminal: InTerminal = None,
    session: Session = "last",
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Change a pending step. An empty --name or --if, and --timeout 0, remove the value."""
    from footplate.cli.actions import steps as actions

    sent: dict[str, Any] = {
        "name": name,
        "condition": condition,
        "on_failure": on_failure,
        "max_attempts": attempts,
        "timeout_seconds": timeout,
        "message": message,
        "project_id": project,
    }
    texts = _read_texts(shell=shell, prompt=prompt, external=external, merge=merge, push=push)
    sent |= {TEXT_FIELDS[kind]: text for kind, text in texts.items()}
    fields: dict[str, Any] = {key: value or None for key, value in sent.items() if value is not None}
    if ends_session is not None:
        fields["ends_session"] = ends_session
    if terminal is not None:
        fields["terminal"] = terminal
    if not fields:
        raise typer.BadParameter("Nothing to change: use an option such as --shell or --if.")
    actions.edit_step(step, fields, session=session, as_json=as_json, profile=profile)


@steps.command("mv")
def move(
    step: Step,
    before: Before = None,
    last: Annotated[bool, typer.Option("--last", help="Move it to the end of the queue.")] = False,
    session: Session = "last",
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Move a pending step before another one, or to the end of the queue."""
    from footplate.cli.actions import steps as actions

    if (before is not None) == last:
        raise typer.BadParameter("Use either --before STEP or --last.")
    actions.move_step(step, before=before, session=session, as_json=as_json, profile=profile)


@steps.command("rm")
def remove(
    step: Step, session: Session = "last", as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Remove a pending step from the queue. It stays listed as cancelled."""
    from footplate.cli.actions import steps as actions

    actions.remove_step(step, session=session, as_json=as_json, profile=profile)


@steps.command("retry")
def retry(
    step: Step,
    play: Annotated[bool, typer.Option("--play", help="Let a paused session run its steps again.")] = False,
    session: Session = "last",
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Repeat a failed or cancelled step: adds a copy at the front of the queue. Prints its ID."""
    from footplate.cli.actions import steps as actions

    actions.retry_step(step, play=play, session=session, as_json=as_json, profile=profile)


@steps.command("result")
def result(
    step: Step,
    status: Annotated[ResultStatus, typer.Option(metavar="STATUS", help="completed, failed or timed_out.")],
    stdout: Annotated[str | None, typer.Option(metavar="TEXT", help="Output. `-` reads stdin.")] = None,
    stderr: Annotated[str | None, typer.Option(metavar="TEXT", help="Error output. `-` reads stdin.")] = None,
    exit_code: Annotated[int | None, typer.Option(metavar="N", help="Exit code.")] = None,
    duration: Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help="How long the work took.")] = None,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="Why it failed.")] = None,
    session: Session = "last",
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Submit the result of an external step. It is accepted once."""
    from footplate.cli.actions import steps as actions

    sent: dict[str, Any] = {
        "status": status,
        "exit_code": exit_code,
        "duration_ms": None if duration is None else round(duration * 1000),
        "error_message": error,
        **_read_texts(stdout=stdout, stderr=stderr),
    }
    actions.submit_result(step, sent, session=session, as_json=as_json, profile=profile)


def play(session: options.OneSession = "last", as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Let a paused session run its steps."""
    from footplate.cli.actions import steps as actions

    actions.change_playback(session, "play", as_json=as_json, profile=profile)


def pause(session: options.OneSession = "last", as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Pause a session: its current step finishes, and no other starts."""
    from footplate.cli.actions import steps as actions

    actions.change_playback(session, "pause", as_json=as_json, profile=profile)


def run_next(
    session: options.OneSession = "last", as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Run one step of a paused session."""
    from footplate.cli.actions import steps as actions

    actions.change_playback(session, "next", as_json=as_json, profile=profile)


@queue.callback()
def _queue() -> None:
    """Run a file of steps."""


@queue.command("run")
def run_pipeline(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file with steps. `-` reads stdin.")],
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            "-s",
            metavar="ID",
            help="Add the steps to this session instead of a new one. `last` is the last used session.",
        ),
    ] = None,
    agent: session_options.Agent = None,
    environment: session_options.Environment = None,
    backend: options.Backend = None,
    model: session_options.Model = None,
    harness: session_options.Harness = None,
    system: session_options.System = None,
    directory: session_options.Directory = None,
    scratch: session_options.Scratch = False,
    project: session_options.Projects = None,
    include_uncommitted: session_options.IncludeUncommitted = False,
    allowed_tools: session_options.AllowedTools = None,
    disallowed_tools: session_options.DisallowedTools = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the session.  [default: the name of the file]")
    ] = None,
    visibility: options.VisibilityOption = None,
    team: options.TeamOption = None,
    end_when_done: session_options.EndWhenDone = False,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Print the session ID and exit. The steps run on the server.")
    ] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Run the steps of a YAML file in a new session, and watch them. Ctrl-C detaches and leaves the session running.

    Exit codes: 0 all steps completed or were skipped, 1 a step failed, 2 invalid file or usage, 3 the session needs
    action or is paused, 5 a step was cancelled, 7 server unreachable, 130 detached with Ctrl-C.
    """
    from footplate.cli.actions import pipelines as actions

    if session and (agent or environment or backend or model or system or title):
        raise typer.BadParameter("A session that exists keeps its agent, model and title. Omit these options.")
    request = session_options.build_run_request(
        session=session,
        background=detach,
        agent=agent,
        environment=environment,
        backend=backend,
        model=model,
        harness=harness,
        system=system,
        title=title or ("pipeline" if str(file) == "-" else file.name),
        directory=directory,
        scratch=scratch,
        projects=project,
        include_uncommitted=include_uncommitted,
        allowed_tools=allowed_tools,
        disallowed_tools=disallowed_tools,
        visibility=visibility,
        team=team,
        end_when_done=end_when_done,
    )
    actions.run_pipeline(file, request, detach=detach, as_json=as_json, profile=profile)


def _read_texts(**values: str | None) -> dict[str, str]:
    """Returns the values that were given. `-` stands for stdin."""
    given = {name: value for name, value in values.items() if value is not None}
    if [*given.values()].count("-") > 1:
        raise typer.BadParameter("Only one option can read stdin.")
    return {name: sys.stdin.read() if value == "-" else value for name, value in given.items()}
