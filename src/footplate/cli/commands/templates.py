"""Defines `footplate templates`: templates for new sessions, which belong to the organisation."""

from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

templates = typer.Typer(help="Manage templates for new sessions.", no_args_is_help=True, cls=GroupedHelp)
Template = Annotated[str, typer.Argument(metavar="TEMPLATE", help="ID or name of a template.")]
SessionFile = typer.Option(
    "--session",
    metavar="FILE",
    help="JSON file with the body of `POST /v1/sessions`. `-` reads stdin.",
    allow_dash=True,
)
Description = Annotated[str | None, typer.Option(metavar="TEXT", help="Purpose of the template.")]


@templates.callback()
def group() -> None:
    """Manage templates for new sessions."""


@templates.command("ls")
def list_templates(
    include_archived: Annotated[bool, typer.Option("--all", "-a", help="Include archived templates.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List the templates, newest first."""
    from footplate.cli.actions import templates as actions

    actions.list_templates(include_archived=include_archived, as_json=as_json, profile=profile)


@templates.command()
def show(template: Template, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show a template with the fields of its sessions."""
    from footplate.cli.actions import templates as actions

    actions.show(template, as_json=as_json, profile=profile)


@templates.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the template.")],
    session: Annotated[Path, SessionFile],
    description: Description = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create a template. It is checked like a request that creates a session."""
    from footplate.cli.actions import templates as actions

    actions.create(name, session, description=description, as_json=as_json, profile=profile)


@templates.command()
def update(
    template: Template,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="New name.")] = None,
    session: Annotated[Path | None, SessionFile] = None,
    description: Description = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Change a template. Options that you omit stay unchanged."""
    from footplate.cli.actions import templates as actions

    if name is None and session is None and description is None:
        raise typer.BadParameter("Nothing to change. Use --name, --session or --description.")
    actions.update(template, name=name, session=session, description=description, as_json=as_json, profile=profile)


@templates.command()
def rm(template: Template, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Archive a template. Sessions that were created with it stay."""
    from footplate.cli.actions import templates as actions

    actions.archive(template, as_json=as_json, profile=profile)
