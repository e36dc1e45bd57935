"""Defines `footplate batch`: many background sessions from one file. Each command imports its implementation only when
it runs, so that every command starts quickly.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from footplate.cli import options
from footplate.cli.commands import session_options
from footplate.cli.commands.help_formatter import GroupedHelp
from footplate.domain.sessions.batches import MAX_JOBS, BatchPriority

_FILE_ENDINGS: Final = (".jsonl", ".json", ".ndjson")


class _BatchCommands(GroupedHelp):
    """`footplate batch jobs.jsonl` is short for `footplate batch run jobs.jsonl`, also with options before the file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        files = [arg for arg in args if arg.endswith(_FILE_ENDINGS)]
        if files and (args[0] == files[0] or args[0].startswith("-")):
            args = ["run", *args]
        return super().parse_args(ctx, args)


batches = typer.Typer(
    help="Run many jobs in the background, each in a session of its own.",
    no_args_is_help=True,
    cls=_BatchCommands,
    rich_markup_mode=None,
)


class RetriedOutcome(StrEnum):
    FAILED = "failed"
    CANCELLED = "cancelled"
    COMPLETED = "completed"


Batch = Annotated[str, typer.Argument(metavar="BATCH", help="ID of a batch.  [default: the last used batch]")]
Detach = Annotated[
    bool, typer.Option("--detach", "-d", help="Print the batch ID and exit. The jobs run on the server.")
]


@batches.command("run")
def run_batch(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file with one job in each line, as JSON.")],
    agent: session_options.Agent = None,
    environment: session_options.Environment = None,
    model: session_options.Model = None,
    harness: session_options.Harness = None,
    system: session_options.System = None,
    project: session_options.Projects = None,
    include_uncommitted: session_options.IncludeUncommitted = False,
    allowed_tools: session_options.AllowedTools = None,
    disallowed_tools: session_options.DisallowedTools = None,
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Name of the batch.  [default: the name of the file]")
    ] = None,
    priority: Annotated[
        BatchPriority, typer.Option(metavar="PRIORITY", help="high (as interactive sessions), normal or low.")
    ] = BatchPriority.NORMAL,
    max_running: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_JOBS, metavar="N", help="How many jobs run at once.  [default: no limit]"),
    ] = None,
    visibility: options.VisibilityOption = None,
    team: options.TeamOption = None,
    detach: Detach = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Run the jobs of a file, each in a background session, and watch them. Ctrl-C detaches and leaves them running.

    Exit codes: 0 all jobs completed, 1 a job failed, 2 invalid file or usage, 3 all remaining jobs need action, 5 a job
    was cancelled, 7 server unreachable, 130 detached with Ctrl-C.
    """
    from footplate.cli.actions import batches as actions

    request = session_options.build_run_request(
        background=True,
        agent=agent,
        environment=environment,
        model=model,
        harness=harness,
        system=system,
        directory=None,
        scratch=not project,
        projects=project,
        include_uncommitted=include_uncommitted,
        allowed_tools=allowed_tools,
        disallowed_tools=disallowed_tools,
        visibility=visibility,
        team=team,
    )
    wanted = actions.BatchOptions(name=name or file.name, priority=priority.value, max_running=max_running)
    actions.run_batch(file, request, wanted, detach=detach, as_json=as_json, profile=profile)


@batches.command("ls")
def list_batches(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="How many.")] = 20,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List batches, the newest first."""
    from footplate.cli.actions import batches as actions

    actions.list_batches(limit, as_json=as_json, profile=profile)


@batches.command("show")
def show_batch(batch: Batch = "last", as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show a batch, and its jobs that failed or need action."""
    from footplate.cli.actions import batches as actions

    actions.show_batch(batch, as_json=as_json, profile=profile)


@batches.command("attach")
def attach_batch(batch: Batch = "last", as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Watch a batch until it ends. Exit codes: as for `batch run`."""
    from footplate.cli.actions import batches as actions

    actions.attach_batch(batch, as_json=as_json, profile=profile)


@batches.command("results")
def print_results(
    batch: Batch = "last",
    failed: Annotated[bool, typer.Option("--failed", help="Only jobs that did not complete.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Also print later results, until the batch has ended.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    profile: options.Profile = None,
) -> None:
    """Print the results of the jobs that have ended, in the order in which they ended."""
    from footplate.cli.actions import batches as actions

    actions.print_results(batch, only_failed=failed, follow=follow, as_json=as_json, profile=profile)


@batches.command("retry")
def retry_batch(
    batch: Batch = "last",
    outcome: Annotated[
        list[RetriedOutcome] | None,
        typer.Option(metavar="OUTCOME", help="failed, cancelled or completed. May be repeated.  [default: failed]"),
    ] = None,
    detach: Detach = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Repeat the jobs that failed, in new sessions of a new batch, and watch it. Exit codes: as for `batch run`."""
    from footplate.cli.actions import batches as actions

    outcomes = [one.value for one in outcome or ()]
    actions.retry_batch(batch, outcomes, detach=detach, as_json=as_json, profile=profile)


@batches.command("cancel")
def cancel_batch(batch: Batch = "last", as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Cancel the jobs of a batch that have not ended."""
    from footplate.cli.actions import batches as actions

    actions.cancel_batch(batch, as_json=as_json, profile=profile)
