"""`footplate projects`: the repositories that sessions work on. What they need they import when they are called."""

from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.grouping import Grouped

projects = typer.Typer(help="Projects: the repositories that sessions work on.", no_args_is_help=True, cls=Grouped)

ProjectId = Annotated[str, typer.Argument(metavar="PROJECT", help="A project's id.")]


@projects.command("ls")
def list_projects(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List projects, newest first."""
    from footplate.cli import managing_projects

    managing_projects.list_projects(as_json=as_json, profile=profile)


@projects.command("show")
def show_project(project: ProjectId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show a project: where it is, what sessions begin with, how far its files are trusted."""
    from footplate.cli import managing_projects

    managing_projects.show_project(project, as_json=as_json, profile=profile)


@projects.command("create")
def create_project(
    place: Annotated[
        str, typer.Argument(metavar="PATH|URL", help="Below the server's projects root, or https://… of a repository.")
    ],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Its name.  [default: after path or URL]")] = None,
    branch: Annotated[
        str | None, typer.Option(metavar="NAME", help="What sessions begin with.  [default: what is checked out]")
    ] = None,
    trust: Annotated[
        str, typer.Option(metavar="LEVEL", help="How far its files may direct an agent: nothing, instructions or all.")
    ] = "nothing",
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create a project and print its id. Nothing is read or fetched before a session needs it."""
    from footplate.cli import managing_projects

    managing_projects.create_project(place, name=name, branch=branch, trust=trust, as_json=as_json, profile=profile)


@projects.command("archive")
def archive_project(project: ProjectId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Archive a project: its sessions go on, new ones cannot use it. The repository is not touched."""
    from footplate.cli import managing_projects

    managing_projects.archive_project(project, as_json=as_json, profile=profile)
