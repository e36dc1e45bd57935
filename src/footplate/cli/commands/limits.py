"""Defines `footplate limits`: shows the limits of the organisation and its members with their use, and changes them."""

from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp
from footplate.cli.render import terminal_io
from footplate.domain.organisations.limits import EACH_MEMBER, ORGANISATION, LimitName

limits = typer.Typer(help="Show and change the limits of the organisation and its members.", cls=GroupedHelp)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of the limit, from `footplate limits`.",
        autocompletion=lambda: [*LimitName],
    ),
]
Member = Annotated[str | None, typer.Option(metavar="MEMBER", help="ID or name of one member to limit.")]
EachMember = Annotated[bool, typer.Option("--each-member", help="Limit each member that has no limit of its own.")]
Organisation = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="As the operator of the server: limit this organisation in the database of FOOTPLATE_DATABASE_URL, or of "
        "a running `footplate dev`. Its administrators cannot exceed that limit.",
    ),
]


@limits.callback(invoke_without_command=True)
def show(ctx: typer.Context, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show the limits of the organisation and its members, and how much of each is used."""
    if ctx.invoked_subcommand is None:
        from footplate.cli.actions import limits as actions

        actions.show_limits(as_json=as_json, profile=profile)


@limits.command("set")
def set_limit(
    name: Name,
    value: Annotated[int, typer.Argument(metavar="VALUE", min=0, help="The highest number that is permitted.")],
    member: Member = None,
    each_member: EachMember = False,
    organisation: Organisation = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Set a limit. It takes effect within 5 seconds. Requires the role `admin`."""
    _change(name, value, member, each_member, organisation, as_json, profile)


@limits.command("unset")
def unset_limit(
    name: Name,
    member: Member = None,
    each_member: EachMember = False,
    organisation: Organisation = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Remove a limit. Requires the role `admin`."""
    _change(name, None, member, each_member, organisation, as_json, profile)


def _change(
    name: str,
    value: int | None,
    member: str | None,
    each_member: bool,
    organisation: str | None,
    as_json: bool,
    profile: str | None,
) -> None:
    if member is not None and (each_member or organisation):
        raise typer.BadParameter("Cannot be combined with --each-member or --organisation.", param_hint="--member")
    if name not in [*LimitName]:
        raise typer.BadParameter(f"{name!r} is not a limit. Use one of: {', '.join(LimitName)}.", param_hint="NAME")
    scope = EACH_MEMBER if each_member else ORGANISATION
    if organisation is not None:
        _set_in_database(organisation, LimitName(name), scope, value)
    else:
        from footplate.cli.actions import limits as actions

        actions.set_limit(LimitName(name), value, scope=scope, member=member, as_json=as_json, profile=profile)


def _set_in_database(organisation: str, name: LimitName, scope: str, value: int | None) -> None:
    from footplate import wiring
    from footplate.cli.profile import dev_server
    from footplate.telemetry import configure_logging

    configure_logging()
    terminal_io.run_async(wiring.set_limit(dev_server.load_settings(), organisation, name, scope, value))
    terminal_io.print_result(f"{name} of {organisation}: {'no limit' if value is None else value}")
