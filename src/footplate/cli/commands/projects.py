"""Defines `footplate projects`. Each command imports its implementation only when it runs, so that every command starts
quickly.
"""

from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

projects = typer.Typer(
    help="Manage projects, the repositories that sessions work on.", no_args_is_help=True, cls=GroupedHelp
)

CACHE_OPTION = typer.Option(
    "--cache",
    metavar="DIRECTORY",
    help="Ignored directory that the setup leaves and that is cached. May be repeated.  [default: common names]",
)
NO_CACHE_OPTION = typer.Option("--no-cache", help="Cache no directory.")
ProjectId = Annotated[str, typer.Argument(metavar="PROJECT", help="ID of a project.")]


@projects.command("ls")
def list_projects(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List projects, newest first."""
    from footplate.cli.actions import projects as actions

    actions.list_projects(as_json=as_json, profile=profile)


@projects.command("show")
def show_project(project: ProjectId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show a project: its location, start branch and trust level."""
    from footplate.cli.actions import projects as actions

    actions.show_project(project, as_json=as_json, profile=profile)


@projects.command("create")
def create_project(
    place: Annotated[
        str,
        typer.Argument(
            metavar="PATH|URL", help="A path below the server's projects root, or the https:// URL of a repository."
        ),
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the project.  [default: from the path or URL]")
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Branch that sessions start from.  [default: the branch that is checked out]"
        ),
    ] = None,
    trust: Annotated[
        str,
        typer.Option(
            metavar="LEVEL", help="Which of the project's files may configure an agent: nothing, instructions or all."
        ),
    ] = "nothing",
    setup: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command that prepares each session's tree, such as 'npm install'. It must be repeatable.",
        ),
    ] = None,
    cache: Annotated[list[str] | None, CACHE_OPTION] = None,
    no_cache: Annotated[bool, NO_CACHE_OPTION] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create a project and print its ID. The repository is read or fetched when a session first needs it."""
    from footplate.cli.actions import projects as actions

    actions.create_project(
        place,
        name=name,
        branch=branch,
        trust=trust,
        setup=setup,
        cached_directories=actions.choose_cached_directories(cache, no_cache=no_cache),
        as_json=as_json,
        profile=profile,
    )


@projects.command("setup")
def change_setup(
    project: ProjectId,
    command: Annotated[
        str | None,
        typer.Argument(metavar="COMMAND", help="Command that prepares each session's tree, such as 'npm install'."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the setup.")] = False,
    cache: Annotated[list[str] | None, CACHE_OPTION] = None,
    no_cache: Annotated[bool, NO_CACHE_OPTION] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Change the setup of a project. It runs in each session at its next turn, and must be repeatable."""
    from footplate.cli.actions import projects as actions

    actions.change_setup(
        project,
        command,
        remove=remove,
        cached_directories=actions.choose_cached_directories(cache, no_cache=no_cache),
        as_json=as_json,
        profile=profile,
    )


@projects.command("archive")
def archive_project(project: ProjectId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Archive a project. Its sessions continue, but new ones cannot use it. The repository is not changed."""
    from footplate.cli.actions import projects as actions

    actions.archive_project(project, as_json=as_json, profile=profile)
