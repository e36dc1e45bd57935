"""Defines `footplate login`, `logout`, `whoami` and `dashboard`."""

from typing import Annotated

import typer

from footplate.cli import options


def login(
    base_url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            show_default=False,
            help="Address of the server.  [default: that of the profile]",
        ),
    ] = None,
    as_json: options.Json = False,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="NAME", help="The profile.  [default: the current one, else `default`]"),
    ] = None,
) -> None:
    """Sign in to a server with your browser, and save the API key that you get in a profile.

    The command prints an address and a code. Open the address on any device, sign in there, compare the code and
    approve it. The key has your roles and expires after some weeks.
    """
    from footplate.cli.actions import sign_in as actions

    actions.sign_in(base_url, as_json=as_json, profile=profile)


def logout(
    as_json: options.Json = False,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="The profile.  [default: the current one]")
    ] = None,
) -> None:
    """Sign out: revoke the API key of a profile, and remove it from the profile."""
    from footplate.cli.actions import sign_in as actions

    actions.sign_out(as_json=as_json, profile=profile)


def whoami(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show as whom you are signed in: the member, its roles and teams, and the server."""
    from footplate.cli.actions import sign_in as actions

    actions.show_principal(as_json=as_json, profile=profile)


def dashboard(
    print_only: Annotated[bool, typer.Option("--print", help="Print the address instead of opening it.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Open the dashboard in your browser. On the server's machine, a link that works once signs you in."""
    from footplate.cli.actions import sign_in as actions

    actions.open_dashboard(opens=not print_only and not as_json, as_json=as_json, profile=profile)
