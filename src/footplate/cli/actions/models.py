"""Implements `footplate models`."""

from footplate.cli.connection import run_with_client
from footplate.cli.render import resource_tables, terminal_io


def list_models(connection: str | None, *, as_json: bool, profile: str | None) -> None:
    found = run_with_client(lambda client, _: client.models.list(), profile=profile, as_json=as_json)
    chosen = [model for model in found if connection in {None, model.connection}]
    if as_json:
        terminal_io.print_json([model.wire() for model in chosen])
    elif chosen:
        resource_tables.print_models(chosen)
    else:
        terminal_io.print_note(
            "No models are listed. The operator gives the API a file of connections, or the keys of the providers; "
            "see docs/models.md."
        )
