"""Defines `footplate api-keys`, which creates API keys."""

from typing import Annotated

import typer

from footplate.cli.commands.help_formatter import GroupedHelp
from footplate.cli.render import terminal_io

app = typer.Typer(help="Manage API keys.", no_args_is_help=True, cls=GroupedHelp)


@app.callback()
def group() -> None:
    """Manage API keys."""


@app.command()
def create(
    name: Annotated[str, typer.Option(help="Purpose of the key, shown in the audit trail.")],
    organisation: Annotated[
        str, typer.Option(help="Organisation of the key: letters, digits and `._-`. Created if it is new.")
    ] = "default",
    role: Annotated[
        list[str] | None,
        typer.Option(help="Role of the key, `member` by default. `policy_admin` may change rules. May be repeated."),
    ] = None,
) -> None:
    """Create an API key and print its secret. Only a hash is stored, so the secret is never shown again."""
    from footplate import wiring
    from footplate.cli.profile import dev_server
    from footplate.telemetry import configure_logging

    configure_logging()
    secret = terminal_io.run_async(
        wiring.create_key(dev_server.load_settings(), organisation, name, role or ["member"])
    )
    terminal_io.err().print("Save this key now. It is not shown again.")
    terminal_io.print_result(secret)
