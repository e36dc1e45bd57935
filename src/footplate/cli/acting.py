"""Implements the session commands: run, attach, ls, show, logs, fork, interrupt, archive and rm."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

import typer

from footplate.cli import memory, output, prompting, starting, tables
from footplate.cli.answers import Interrupted, SessionDetail, Started
from footplate.cli.connection import talk
from footplate.cli.options import Format
from footplate.cli.output import Exit, print_json, print_json_line
from footplate.cli.profiles import Server
from footplate.cli.views import LinesView, ResultView, TextView, View
from footplate.client import Approval, AsyncFootplate, Session


def run(
    request: starting.Request,
    form: Format,
    *,
    background: bool,
    previews: bool,
    timeout: float | None,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, server: Server) -> int:
        begun = await starting.begin(client, server, request)
        if background:
            _started(begun.session_id, form)
            return Exit.DONE
        view = _view(form, previews=previews)
        return (await starting.follow(client, begun, view, limit=timeout, ask=_asks(form))).exit_code

    raise typer.Exit(talk(work, profile=profile, as_json=form is not Format.TEXT))


def attach(wanted: str, form: Format, *, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> int:
        session_id = await starting.session_id_of(client, wanted)
        return (await starting.attach(client, session_id, _view(form, show_input=True), ask=_asks(form))).exit_code

    raise typer.Exit(talk(work, profile=profile, as_json=form is not Format.TEXT))


def _asks(form: Format) -> prompting.Asks | None:
    return prompting.ask if form is Format.TEXT and prompting.can_ask() else None


def ls(*, limit: int, statuses: Sequence[str], every: bool, quiet: bool, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Session]:
        pages = client.sessions.list(limit=min(limit, 100), statuses=statuses, include_archived=every)
        found: list[Session] = []
        async for session in pages:
            found.append(session)
            if len(found) == limit:
                break
        return found

    found = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([session.wire() for session in found])
    elif quiet:
        for session in found:
            output.print_result(session.id)
    else:
        tables.sessions(found)


def show(wanted: str, *, as_json: bool, profile: str | None) -> None:
    waiting: list[Approval] = []

    async def work(client: AsyncFootplate, _server: Server) -> SessionDetail:
        session_id = await starting.session_id_of(client, wanted)
        session = await client.sessions.retrieve(session_id)
        if not as_json:
            listed = [one.id async for one in client.approvals.list(session_id=session_id)]
            waiting.extend([await client.approvals.retrieve(event_id) for event_id in listed])
        return SessionDetail(session=session, turns=(await client.turns.list(session_id, limit=20).page()).data)

    detail = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json({"session": detail.session.wire(), "turns": [turn.wire() for turn in detail.turns]})
    else:
        tables.session(detail.session, detail.turns, waiting)


def logs(wanted: str, *, follow: bool, tail: int | None, as_json: bool, profile: str | None) -> None:
    view: View = LinesView() if as_json else TextView(show_input=True, lines_on_stdout=True)

    async def work(client: AsyncFootplate, _server: Server) -> None:
        session_id = await starting.session_id_of(client, wanted)
        if follow:
            stream = client.events.stream(session_id, after="0", on_connection=view.connection)
            async with aclosing(cast("Any", stream)) as events:
                async for event in events:
                    view.show(event)
        elif tail is not None:
            page = await client.events.list(session_id, limit=tail, order="desc").page()
            for event in reversed(page.data):
                view.show(event)
        else:
            async for event in client.events.list(session_id):
                view.show(event)

    talk(work, profile=profile, as_json=as_json)


def fork(wanted: starting.Fork, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Session:
        return await starting.fork(client, wanted)

    made = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(made.wire())
    else:
        output.print_result(made.id)
        output.err().print(f'[dim]Continue there: footplate run --session {made.id} "…"[/]')


def interrupt(wanted: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Interrupted:
        session_id = await starting.session_id_of(client, wanted)
        event = await client.events.interrupt(session_id)
        return Interrupted(session_id=session_id, event_id=str(event.id))

    sent = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(sent.model_dump())
    else:
        output.err().print(f"Interrupted {sent.session_id}.")


def archive(wanted: Sequence[str], *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Session]:
        return [await client.sessions.archive(await starting.session_id_of(client, each)) for each in wanted]

    archived = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([session.wire() for session in archived])
    else:
        for session in archived:
            output.print_result(session.id)


def remove(wanted: Sequence[str], *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[dict[str, Any]]:
        ids = [await starting.session_id_of(client, each) for each in wanted]
        deleted = [(await client.sessions.delete(each)).wire() for each in ids]
        if memory.recall(client.base_url, "session") in ids:
            memory.forget(client.base_url, "session")
        return deleted

    deleted = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(deleted)
    else:
        for item in deleted:
            output.print_result(item["id"])


def _started(session_id: str, form: Format) -> None:
    """Prints the session id. In text format, also tells the user how to watch the session."""
    if form is Format.TEXT:
        output.print_result(session_id)
        output.err().print(f"[dim]Watch it with: footplate attach {session_id}[/]")
    else:
        print_json_line(Started(session_id=session_id).model_dump())


def _view(form: Format, *, previews: bool = False, show_input: bool = False) -> View:
    if form is Format.TEXT:
        return TextView(show_input=show_input)
    return ResultView() if form is Format.JSON else LinesView(previews=previews)
