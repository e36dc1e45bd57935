"""Implements `footplate inbox`, `pin` and `unpin`."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, cast

import typer

from footplate.cli.actions import members
from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import inbox_views, terminal_io
from footplate.client import AsyncFootplate, InboxItem, SessionPin
from footplate.client.approvals import DismissedItem, InboxKind, InboxView

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


def list_items(view: str, *, kind: str | None, project: str | None, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[InboxItem]:
        project_id = None if project is None else await members.resolve_project(client, project)
        pages = client.inbox.list(
            view=cast("InboxView", view), kind=cast("InboxKind | None", kind), project_id=project_id, limit=100
        )
        return [item async for item in pages]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([item.wire() for item in found])
    else:
        inbox_views.print_items(found)


def assign(ids: Sequence[str], member: str | None, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[InboxItem]:
        member_id = None if member is None else await members.resolve_member(client, member)
        return [await client.inbox.assign(each, member_id) for each in ids]

    _print_changed(work, as_json=as_json, profile=profile)


def snooze(ids: Sequence[str], until: str | None, *, as_json: bool, profile: str | None) -> None:
    """`until`: None shows the items again."""
    time = None if until is None else parse_time(until)

    async def work(client: AsyncFootplate, _server: Server) -> list[InboxItem]:
        return [await client.inbox.snooze(each, time) for each in ids]

    _print_changed(work, as_json=as_json, profile=profile)


def dismiss(ids: Sequence[str], *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[DismissedItem]:
        return [await client.inbox.dismiss(each) for each in ids]

    dismissed = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([item.wire() for item in dismissed])
    else:
        for item in dismissed:
            terminal_io.print_result(f"{item.id} dismissed")


def pin(wanted: Sequence[str], *, is_pinned: bool, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[SessionPin]:
        ids = [await session_start.resolve_session_id(client, each) for each in wanted]
        change = client.sessions.pin if is_pinned else client.sessions.unpin
        return [await change(session_id) for session_id in ids]

    pins = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([each.wire() for each in pins])
    else:
        for each in pins:
            terminal_io.print_result(f"{each.session_id} {'pinned' if each.is_pinned else 'not pinned'}")


def parse_time(text: str) -> datetime:
    """Parses `2h` from now, or a time. Without a time zone, it is in that of this machine."""
    number, unit = text[:-1], _UNITS.get(text[-1:])
    try:
        if unit is not None and number.isdigit():
            return datetime.now(UTC) + timedelta(**{unit: int(number)})
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is not a valid time. Examples: 30m, 2h, 3d, 2026-11-20T08:00", param_hint="--until"
        ) from None
    return time if time.tzinfo else time.astimezone()


def _print_changed(
    work: Callable[[AsyncFootplate, Server], Awaitable[list[InboxItem]]], *, as_json: bool, profile: str | None
) -> None:
    changed = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([item.wire() for item in changed])
    else:
        for item in changed:
            terminal_io.print_result(f"{item.id} {inbox_views.describe_state(item)}")
