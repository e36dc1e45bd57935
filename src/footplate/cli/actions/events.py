"""Implements `footplate events`."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, cast

from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io
from footplate.cli.render.change_text import describe_change
from footplate.cli.render.terminal_io import print_json_line, print_note
from footplate.client import AsyncFootplate, ClientError


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    types: Sequence[str] = ()
    session: str | None = None
    """The id of a session, or its unique start."""
    project_id: str | None = None


def follow_changes(
    wanted: ChangeFilter, *, after: int | None, wait: float | None, as_json: bool, profile: str | None
) -> None:
    """Prints changes until the user stops it, or until there was none for `wait` seconds."""

    def report_connection(error: ClientError | None) -> None:
        if not as_json:
            print_note("Connection lost, reconnecting." if error else "Reconnected.")

    async def work(client: AsyncFootplate, _server: Server) -> None:
        session_id = await session_start.resolve_session_id(client, wanted.session) if wanted.session else None
        stream = client.events.changes(
            after=None if after is None else str(after),
            types=wanted.types,
            session_id=session_id,
            project_id=wanted.project_id,
            on_connection=report_connection,
        )
        with suppress(TimeoutError, StopAsyncIteration):
            async with aclosing(cast("Any", stream)) as changes:
                while True:
                    change = await asyncio.wait_for(anext(changes), wait)
                    if as_json:
                        print_json_line(change.wire())
                    else:
                        terminal_io.print_exactly(terminal_io.out(), describe_change(change))

    run_with_client(work, profile=profile, as_json=as_json)
