"""Defines `footplate models`."""

from typing import Annotated

import typer

from footplate.cli import options


def models(
    connection: Annotated[
        str | None, typer.Option("--connection", "-c", metavar="NAME", help="Only the models of this connection.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List the models that agents can use, as names for `--model`: `connection/model`.

    The list has the models that the operator named for a connection, or else those that are known. Others of the same
    connection can be used too.
    """
    from footplate.cli.actions import models as actions

    actions.list_models(connection, as_json=as_json, profile=profile)
