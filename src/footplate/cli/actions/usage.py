"""Implements `footplate usage`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from footplate.cli.connection import run_with_client
from footplate.cli.render import resource_tables, terminal_io


def show_usage(
    group_by: Sequence[str],
    filters: Mapping[str, Sequence[str]],
    *,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    min_iterations: int | None,
    as_json: bool,
    profile: str | None,
) -> None:
    found = run_with_client(
        lambda client, _: client.usage.query(
            group_by=group_by,
            start=None if since is None else since.replace(tzinfo=UTC),
            end=None if until is None else until.replace(tzinfo=UTC),
            limit=limit,
            filters=filters,
            min_iterations=min_iterations,
        ),
        profile=profile,
        as_json=as_json,
    )
    if as_json:
        terminal_io.print_json(found.wire())
        return
    resource_tables.print_usage(found, group_by)
    if found.has_more:
        terminal_io.print_note("There are more lines. Request a shorter period or fewer groups.")
