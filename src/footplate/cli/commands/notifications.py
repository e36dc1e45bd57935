"""Defines `footplate notifications`: the browsers in which you are notified, and quiet hours."""

from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

notifications = typer.Typer(
    help="List where you are notified, and set quiet hours.", no_args_is_help=True, cls=GroupedHelp
)

Browser = Annotated[str, typer.Argument(metavar="ID", help="ID of a browser, from `footplate notifications ls`.")]


@notifications.callback()
def group() -> None:
    """List where you are notified, and set quiet hours."""


@notifications.command("ls")
def list_browsers(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List the browsers in which you are notified, and your quiet hours. Add a browser in the dashboard."""
    from footplate.cli.actions import notifications as actions

    actions.list_browsers(as_json=as_json, profile=profile)


@notifications.command("set")
def set_hours(
    quiet: Annotated[
        str | None,
        typer.Option("--quiet", metavar="START-END", help="Be notified only outside these hours: 22:00-07:00."),
    ] = None,
    no_quiet: Annotated[bool, typer.Option("--no-quiet", help="Be notified at any time.")] = False,
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", metavar="ZONE", help="Of the hours: Europe/Berlin.  [default: of this machine]"),
    ] = None,
    enabled: Annotated[
        bool | None, typer.Option("--on/--off", help="Turn notifications on or off in all your browsers.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Set quiet hours, or turn notifications on or off. What still waits at the end of the hours is sent then."""
    from footplate.cli.actions import notifications as actions

    if quiet is not None and no_quiet:
        raise typer.BadParameter("Use --quiet or --no-quiet, not both.")
    if quiet is None and not no_quiet and enabled is None:
        raise typer.BadParameter("Use --quiet, --no-quiet, --on or --off.")
    actions.change_settings(quiet, clear=no_quiet, timezone=timezone, enabled=enabled, as_json=as_json, profile=profile)


@notifications.command()
def rm(browser: Browser, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Remove a browser. Nothing is sent to it any more."""
    from footplate.cli.actions import notifications as actions

    actions.remove_browser(browser, as_json=as_json, profile=profile)


@notifications.command("test")
def send_test(browser: Browser, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Send a notification that only tests a browser, also in quiet hours."""
    from footplate.cli.actions import notifications as actions

    actions.test_browser(browser, as_json=as_json, profile=profile)
