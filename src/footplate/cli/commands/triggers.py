"""Defines `footplate triggers`: other systems start sessions by signed requests. Each command imports its
implementation only when it runs, so that every command starts quickly.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands import session_options
from footplate.cli.commands.help_formatter import GroupedHelp
from footplate.domain.sessions.triggers import MAX_PER_MINUTE

triggers = typer.Typer(
    help="Let other systems start sessions by webhooks.", no_args_is_help=True, cls=GroupedHelp, rich_markup_mode=None
)


class Outcome(StrEnum):
    SESSION_CREATED = "session_created"
    STEPS_ADDED = "steps_added"
    IGNORED = "ignored"
    FAILED = "failed"


Trigger = Annotated[str, typer.Argument(metavar="TRIGGER", help="ID or name of a trigger.")]
Shell = Annotated[
    list[str] | None,
    typer.Option("--shell", metavar="COMMAND", help="A command as a step, without a model. May be repeated."),
]
StepsFile = Annotated[
    Path | None, typer.Option("--steps", metavar="FILE", help="A file of steps, as for `footplate queue run`.")
]
Condition = Annotated[
    str | None,
    typer.Option(
        "--if", metavar="CONDITION", help="Act only if this CEL expression over `payload` is true.", show_default=False
    ),
]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="Title of new sessions, with ${payload.KEY}.")]
PerMinute = Annotated[
    int | None,
    typer.Option(
        "--max-per-minute", min=1, max=MAX_PER_MINUTE, metavar="N", help="Limit of deliveries. 60 in new triggers."
    ),
]
Description = Annotated[str | None, typer.Option(metavar="TEXT", help="What the trigger is for.")]


@triggers.command("ls")
def list_triggers(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List triggers, the newest first."""
    from footplate.cli.actions import triggers as actions

    actions.list_triggers(as_json=as_json, profile=profile)


@triggers.command("create")
def create(
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT", help="The message to the agent, with ${payload.KEY} for values.")
    ] = "",
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Name of the trigger.  [default: the start of the prompt]")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="SESSION", help="Add the steps to this session (ID).  [default: create a session]"),
    ] = None,
    shell: Shell = None,
    steps_file: StepsFile = None,
    condition: Condition = None,
    title: Title = None,
    max_per_minute: PerMinute = None,
    description: Description = None,
    keep_open: Annotated[
        bool, typer.Option("--keep-open", help="Do not end the sessions when nothing is left in their queue.")
    ] = False,
    agent: session_options.Agent = None,
    environment: session_options.Environment = None,
    model: session_options.Model = None,
    harness: session_options.Harness = None,
    system: session_options.System = None,
    project: session_options.Projects = None,
    allowed_tools: session_options.AllowedTools = None,
    disallowed_tools: session_options.DisallowedTools = None,
    visibility: options.VisibilityOption = None,
    team: options.TeamOption = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create a trigger and print its secret, which is never shown again."""
    from footplate.cli.actions import triggers as actions

    of_new_sessions = (agent, environment, model, harness, system, project, allowed_tools, disallowed_tools, title)
    if session is not None and any(of_new_sessions):
        raise typer.BadParameter("--session cannot be combined with options of new sessions, such as --agent.")
    if not (prompt or shell or steps_file):
        raise typer.BadParameter("Give a prompt, --shell or --steps.")
    if steps_file and (shell or prompt):
        raise typer.BadParameter("--steps cannot be combined with a prompt or --shell.")
    request = session_options.build_run_request(
        prompt=prompt,
        background=True,
        agent=agent,
        environment=environment,
        model=model,
        harness=harness,
        system=system,
        directory=None,
        scratch=not project,
        projects=project,
        include_uncommitted=False,
        allowed_tools=allowed_tools,
        disallowed_tools=disallowed_tools,
        visibility=visibility,
        team=team,
        end_when_done=not keep_open,
    )
    wanted = actions.TriggerOptions(
        name=name,
        prompt=prompt or None,
        shell=tuple(shell or ()),
        steps_file=steps_file,
        condition=condition,
        title=title,
        max_per_minute=max_per_minute,
        description=description,
    )
    actions.create_trigger(request, wanted, session=session, as_json=as_json, profile=profile)


@triggers.command("show")
def show(trigger: Trigger, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show a trigger and the address of its deliveries."""
    from footplate.cli.actions import triggers as actions

    actions.show_trigger(trigger, as_json=as_json, profile=profile)


@triggers.command("update")
def update(
    trigger: Trigger,
    prompt: Annotated[str | None, typer.Option(metavar="TEXT", help="The message to the agent.")] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="Name of the trigger.")] = None,
    shell: Shell = None,
    steps_file: StepsFile = None,
    condition: Condition = None,
    no_condition: Annotated[bool, typer.Option("--no-condition", help="Act on every delivery.")] = False,
    title: Title = None,
    max_per_minute: PerMinute = None,
    description: Description = None,
    pause: Annotated[
        bool | None, typer.Option("--pause/--resume", help="Refuse deliveries, or accept them again.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Change a trigger, pause it or resume it. It acts in your name from then on."""
    from footplate.cli.actions import triggers as actions

    if condition and no_condition:
        raise typer.BadParameter("--if cannot be combined with --no-condition.")
    if steps_file and (shell or prompt):
        raise typer.BadParameter("--steps cannot be combined with --prompt or --shell.")
    wanted = actions.TriggerOptions(
        name=name,
        prompt=prompt,
        shell=tuple(shell or ()),
        steps_file=steps_file,
        condition=condition,
        title=title,
        max_per_minute=max_per_minute,
        description=description,
    )
    actions.update_trigger(
        trigger, wanted, removes_condition=no_condition, paused=pause, as_json=as_json, profile=profile
    )


@triggers.command("rotate")
def rotate(
    trigger: Trigger,
    overlap: Annotated[
        int, typer.Option(metavar="HOURS", min=0, max=168, help="Hours for which the old secret is valid too.")
    ] = 24,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Replace the secret of a trigger and print the new one. It is never shown again."""
    from footplate.cli.actions import triggers as actions

    actions.rotate_secret(trigger, overlap_seconds=overlap * 3600, as_json=as_json, profile=profile)


@triggers.command("send")
def send(
    trigger: Trigger,
    payload: Annotated[
        str, typer.Argument(metavar="PAYLOAD", help="A JSON object, or - to read it from standard input.")
    ] = "{}",
    delivery_id: Annotated[
        str | None,
        typer.Option("--delivery-id", metavar="ID", help="ID of the delivery.  [default: a new one]"),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Send a signed delivery, as another system does. FOOTPLATE_TRIGGER_SECRET has the secret, or it is asked for."""
    from footplate.cli.actions import triggers as actions

    actions.send_delivery(trigger, payload, delivery_id=delivery_id, as_json=as_json, profile=profile)


@triggers.command("deliveries")
def deliveries(
    trigger: Trigger,
    outcome: Annotated[Outcome | None, typer.Option(help="Only deliveries with this outcome.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="How many.")] = 20,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List the deliveries of the last days, the newest first."""
    from footplate.cli.actions import triggers as actions

    chosen = None if outcome is None else outcome.value
    actions.list_deliveries(trigger, outcome=chosen, limit=limit, as_json=as_json, profile=profile)


@triggers.command("rm")
def remove(trigger: Trigger, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """End a trigger for good. Its sessions and deliveries stay."""
    from footplate.cli.actions import triggers as actions

    actions.remove_trigger(trigger, as_json=as_json, profile=profile)
