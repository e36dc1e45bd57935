"""`footplate api-keys`: who may use the API."""

from typing import Annotated

import typer

from footplate.cli import output
from footplate.cli.grouping import Grouped

app = typer.Typer(help="Manage API keys.", no_args_is_help=True, cls=Grouped)


@app.callback()
def group() -> None:
    """Manage API keys."""


@app.command()
def create(
    name: Annotated[str, typer.Option(help="What the key is for; shown in the audit trail.")],
    organisation: Annotated[
        str, typer.Option(help="The organisation it belongs to, in letters, digits and `._-`; made if it is new.")
    ] = "default",
    role: Annotated[
        list[str] | None,
        typer.Option(help="A role, `member` if none is given; `policy_admin` may write rules. May be repeated."),
    ] = None,
) -> None:
    """Create a key and print its secret, which is stored only as a hash and never shown again."""
    from footplate import wiring
    from footplate.cli import local
    from footplate.telemetry import configure_logging

    configure_logging()
    secret = output.run(wiring.create_key(local.settings(), organisation, name, role or ["member"]))
    output.err().print("Keep it now; it is not shown again.")
    output.print_result(secret)
