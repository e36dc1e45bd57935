"""Defines `footplate api-keys`, which creates, lists, rotates and revokes API keys."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp
from footplate.cli.commands.members import RoleOption
from footplate.cli.render import terminal_io

app = typer.Typer(help="Manage API keys.", no_args_is_help=True, cls=GroupedHelp)
KeyId = Annotated[str, typer.Argument(metavar="KEY", help="ID of a key, from `footplate api-keys ls`.")]


@app.callback()
def group() -> None:
    """Manage API keys."""


@app.command()
def create(
    name: Annotated[str, typer.Option(metavar="TEXT", help="Purpose of the key, shown in the audit trail.")],
    organisation: Annotated[
        str,
        typer.Option(metavar="NAME", help="Organisation of the key: letters, digits and `._-`. Created if it is new."),
    ] = "default",
    role: RoleOption = None,
    member: Annotated[
        str | None,
        typer.Option(
            metavar="MEMBER", help="Owner of the key (ID or name). Needs --profile.  [default: a new service account]"
        ),
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROJECT",
            help="Restrict the key to sessions of this project (ID or name). Needs --profile. May be repeated.",
        ),
    ] = None,
    expires_in: Annotated[
        int | None, typer.Option("--expires-in", metavar="DAYS", min=1, help="Days until the key expires.")
    ] = None,
    profile: options.Profile = None,
) -> None:
    """Create an API key and print its secret. Only a hash is stored, so the secret is never shown again.

    With --profile, the server of the profile creates the key. Otherwise it is written to the database of
    FOOTPLATE_DATABASE_URL, or of a running `footplate dev`: that is how you get the first key.
    """
    if (member is not None or project) and profile is None:
        hint = "--project" if project else "--member"
        raise typer.BadParameter("Only a server knows members and projects: add --profile.", param_hint=hint)
    roles = role or ["member"]
    expires_at = None if expires_in is None else datetime.now(UTC) + timedelta(days=expires_in)
    if profile is None:
        secret = _create_in_database(organisation, name, roles, expires_at)
    else:
        from footplate.cli.actions import members as actions

        expiry = None if expires_at is None else expires_at.isoformat()
        secret = actions.create_key(
            name, member=member, projects=project or [], roles=roles, expires_at=expiry, profile=profile
        )
    _print_secret(secret)


@app.command("ls")
def list_keys(
    include_revoked: Annotated[bool, typer.Option("--all", "-a", help="Include revoked keys.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List the organisation's keys with owner, roles, projects, expiry and last use. Requires the role `admin`."""
    from footplate.cli.actions import members as actions

    actions.list_keys(include_revoked=include_revoked, as_json=as_json, profile=profile)


@app.command()
def revoke(key: KeyId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Revoke a key. It stops working within 5 seconds, and its open streams end."""
    from footplate.cli.actions import members as actions

    actions.revoke_key(key, as_json=as_json, profile=profile)


@app.command()
def rotate(key: KeyId, profile: options.Profile = None) -> None:
    """Replace the secret of a key and print the new one. The old one stops working within 5 seconds."""
    from footplate.cli.actions import members as actions

    _print_secret(actions.rotate_key(key, profile=profile))


def _create_in_database(organisation: str, name: str, roles: list[str], expires_at: datetime | None) -> str:
    from footplate import wiring
    from footplate.cli.profile import dev_server
    from footplate.telemetry import configure_logging

    configure_logging()
    return terminal_io.run_async(
        wiring.create_key(dev_server.load_settings(), organisation, name, roles, expires_at=expires_at)
    )


def _print_secret(secret: str) -> None:
    terminal_io.err().print("Save this key now. It is not shown again.")
    terminal_io.print_result(secret)
