"""Implements `footplate comments`."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import typer

from footplate.cli.actions import members
from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import inbox_views, terminal_io
from footplate.client import AsyncFootplate, SessionComment

T = TypeVar("T")
_LINES: Final = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")


def list_comments(session: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, session_id: str) -> list[SessionComment]:
        return [comment async for comment in client.comments.list(session_id, limit=100)]

    found = _run(work, session, as_json=as_json, profile=profile)
    if as_json:
        terminal_io.print_json([comment.wire() for comment in found])
    else:
        inbox_views.print_comments(found)


def add(
    path: str,
    lines: str,
    text: str,
    *,
    session: str,
    turn: str | None,
    old: bool,
    project: str | None,
    as_json: bool,
    profile: str | None,
) -> None:
    start, end = parse_lines(lines)

    async def work(client: AsyncFootplate, session_id: str) -> SessionComment:
        return await client.comments.add(
            session_id,
            path=path,
            start_line=start,
            end_line=end,
            body=text,
            turn_id=turn,
            side="old" if old else "new",
            project_id=None if project is None else await members.resolve_project(client, project),
        )

    _print_comment(_run(work, session, as_json=as_json, profile=profile), as_json=as_json)


def edit(comment_id: str, text: str, *, session: str, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, session_id: str) -> SessionComment:
        return await client.comments.update(session_id, comment_id, text)

    _print_comment(_run(work, session, as_json=as_json, profile=profile), as_json=as_json)


def remove(comment_id: str, *, session: str, as_json: bool, profile: str | None) -> None:
    deleted = _run(
        lambda client, session_id: client.comments.delete(session_id, comment_id),
        session,
        as_json=as_json,
        profile=profile,
    )
    if as_json:
        terminal_io.print_json([deleted.wire()])
    else:
        terminal_io.print_result(f"{deleted.id} deleted")


def send(
    session: str, comment_ids: Sequence[str] | None, *, when_busy: str | None, as_json: bool, profile: str | None
) -> None:
    sent = _run(
        lambda client, session_id: client.comments.send(session_id, comment_ids or None, when_busy=when_busy),
        session,
        as_json=as_json,
        profile=profile,
    )
    if as_json:
        terminal_io.print_json(sent.wire())
        return
    for comment in sent.comments:
        terminal_io.print_result(f"{comment.id} sent in {comment.sent_event_id}")
    if not sent.comments:
        terminal_io.print_note("No drafts were left to send.")


def parse_lines(text: str) -> tuple[int, int]:
    """Parses `12` or `12-15`."""
    found = _LINES.fullmatch(text)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise typer.BadParameter(f"{text!r} is neither a line number nor a range such as 12-15", param_hint="LINES")
    return int(found[1]), int(found[2] or found[1])


def _run(work: Callable[[AsyncFootplate, str], Awaitable[T]], session: str, *, as_json: bool, profile: str | None) -> T:
    async def with_session(client: AsyncFootplate, _server: Server) -> T:
        return await work(client, await session_start.resolve_session_id(client, session))

    return run_with_client(with_session, profile=profile, as_json=as_json)


def _print_comment(comment: SessionComment, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(comment.wire())
    else:
        inbox_views.print_comment(comment)
