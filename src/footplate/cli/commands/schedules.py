"""Defines `footplate schedules`: sessions that start by a schedule. Each command imports its implementation only when
it runs, so that every command starts quickly.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands import session_options
from footplate.cli.commands.help_formatter import GroupedHelp
from footplate.domain.sessions.deployments import MAX_CATCH_UP_SECONDS, MIN_CATCH_UP_SECONDS, OverlapPolicy

schedules = typer.Typer(
    help="Start sessions by a schedule.", no_args_is_help=True, cls=GroupedHelp, rich_markup_mode=None
)


class Status(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"


Schedule = Annotated[str, typer.Argument(metavar="SCHEDULE", help="ID or name of a schedule.")]
Cron = Annotated[
    str | None,
    typer.Option(
        metavar="EXPRESSION", help='Minute, hour, day of month, month and day of week, such as "0 9 * * 1-5".'
    ),
]
Timezone = Annotated[
    str | None, typer.Option(metavar="NAME", help="Such as Europe/Berlin.  [default: the time zone of this machine]")
]
Shell = Annotated[
    list[str] | None,
    typer.Option("--shell", metavar="COMMAND", help="A command as a step, without a model. May be repeated."),
]
StepsFile = Annotated[
    Path | None, typer.Option("--steps", metavar="FILE", help="A file of steps, as for `footplate queue run`.")
]
Overlap = Annotated[
    OverlapPolicy | None,
    typer.Option(
        metavar="POLICY",
        help="While an earlier run still works: allow_all (start; the default of new schedules), skip, buffer_one "
        "(start later) or cancel_other.",
    ),
]
CatchUp = Annotated[
    int | None,
    typer.Option(
        min=MIN_CATCH_UP_SECONDS,
        max=MAX_CATCH_UP_SECONDS,
        metavar="SECONDS",
        help="How late a run may start, for example after an outage. 600 in new schedules.",
    ),
]
Description = Annotated[str | None, typer.Option(metavar="TEXT", help="What the schedule is for.")]


@schedules.command("ls")
def list_schedules(
    status: Annotated[Status | None, typer.Option(metavar="STATUS", help="Only active or paused ones.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="How many.")] = 100,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List schedules, the newest first."""
    from footplate.cli.actions import schedules as actions

    actions.list_schedules(limit, status=None if status is None else status.value, as_json=as_json, profile=profile)


@schedules.command("create")
def create(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The message to the agent in each session.")] = "",
    cron: Cron = None,
    timezone: Timezone = None,
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Name of the schedule.  [default: the start of the prompt]")
    ] = None,
    shell: Shell = None,
    steps_file: StepsFile = None,
    overlap: Overlap = None,
    catch_up: CatchUp = None,
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
    """Create a schedule and print its ID. Without --cron, only `footplate schedules run` starts it."""
    from footplate.cli.actions import schedules as actions

    if not (prompt or shell or steps_file):
        raise typer.BadParameter("Give a prompt, --shell or --steps.")
    if shell and steps_file:
        raise typer.BadParameter("--shell cannot be combined with --steps.")
    if timezone is not None and cron is None:
        raise typer.BadParameter("--timezone requires --cron.")
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
    wanted = actions.ScheduleOptions(
        name=name,
        cron=cron,
        timezone=timezone,
        shell=tuple(shell or ()),
        steps_file=steps_file,
        overlap=None if overlap is None else overlap.value,
        catch_up=catch_up,
        description=description,
    )
    actions.create_schedule(request, wanted, as_json=as_json, profile=profile)


@schedules.command("preview")
def preview(
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help='Five fields, such as "0 9 * * 1-5" for 9:00, Monday to Friday.')
    ],
    timezone: Timezone = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Show the next times of an expression, before a schedule has it."""
    from footplate.cli.actions import schedules as actions

    actions.preview_schedule(expression, timezone, as_json=as_json, profile=profile)


@schedules.command("show")
def show(schedule: Schedule, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show a schedule, its next times and its last runs."""
    from footplate.cli.actions import schedules as actions

    actions.show_schedule(schedule, as_json=as_json, profile=profile)


@schedules.command("update")
def update(
    schedule: Schedule,
    prompt: Annotated[str | None, typer.Option(metavar="TEXT", help="The message to the agent.")] = None,
    cron: Cron = None,
    timezone: Timezone = None,
    no_cron: Annotated[
        bool, typer.Option("--no-cron", help="Remove the times: only `schedules run` starts it.")
    ] = False,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="Name of the schedule.")] = None,
    shell: Shell = None,
    steps_file: StepsFile = None,
    overlap: Overlap = None,
    catch_up: CatchUp = None,
    description: Description = None,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", metavar="ID", help="ID of an agent: its newest version.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Change a schedule. It runs in your name from then on."""
    from footplate.cli.actions import schedules as actions

    if no_cron and (cron or timezone):
        raise typer.BadParameter("--no-cron cannot be combined with --cron and --timezone.")
    if shell and steps_file:
        raise typer.BadParameter("--shell cannot be combined with --steps.")
    wanted = actions.ScheduleOptions(
        name=name,
        cron=cron,
        timezone=timezone,
        shell=tuple(shell or ()),
        steps_file=steps_file,
        overlap=None if overlap is None else overlap.value,
        catch_up=catch_up,
        description=description,
    )
    actions.update_schedule(
        schedule, wanted, prompt=prompt, agent=agent, removes_cron=no_cron, as_json=as_json, profile=profile
    )


@schedules.command("pause")
def pause(schedule: Schedule, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Pause a schedule. `schedules run` still starts it."""
    from footplate.cli.actions import schedules as actions

    actions.pause_schedule(schedule, as_json=as_json, profile=profile)


@schedules.command("resume")
def resume(schedule: Schedule, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Resume a paused schedule. It runs in your name from then on."""
    from footplate.cli.actions import schedules as actions

    actions.resume_schedule(schedule, as_json=as_json, profile=profile)


@schedules.command("run")
def run(schedule: Schedule, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Start a session of the schedule now, and print its ID."""
    from footplate.cli.actions import schedules as actions

    actions.run_schedule(schedule, as_json=as_json, profile=profile)


@schedules.command("runs")
def list_runs(
    schedule: Annotated[str, typer.Argument(metavar="SCHEDULE", help="ID or name.  [default: all schedules]")] = "",
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that created no session.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="How many.")] = 20,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List runs, the newest first."""
    from footplate.cli.actions import schedules as actions

    actions.list_runs(schedule, only_failed=failed, limit=limit, as_json=as_json, profile=profile)


@schedules.command("rm")
def remove(schedule: Schedule, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """End a schedule for good. Its sessions and runs stay."""
    from footplate.cli.actions import schedules as actions

    actions.remove_schedule(schedule, as_json=as_json, profile=profile)
