"""Implements the session commands: run, attach, ls, show, logs, fork, share, interrupt, archive and rm."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, Literal, cast

import typer

from footplate.cli import defaults
from footplate.cli.actions import members, pipelines
from footplate.cli.actions.projects import with_local_path
from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.follow import approval_prompt
from footplate.cli.follow.earlier_calls import find_missing_calls
from footplate.cli.json_output_models import Interrupted, Started
from footplate.cli.options import OutputFormat
from footplate.cli.profile import saved_ids
from footplate.cli.profile.server_profiles import Server, parse_timeout
from footplate.cli.render import session_tables, step_tables, terminal_io
from footplate.cli.render.log_view import LogWithIdsView
from footplate.cli.render.session_tables import SessionOverview
from footplate.cli.render.terminal_io import Exit, print_json, print_json_line
from footplate.cli.render.turn_views import JsonLinesView, ResultView, TextView, TurnView
from footplate.client import AsyncFootplate, ClientError, NotFound, Project, Session, Team
from footplate.client.events import MESSAGE

MAX_FILTERED_SESSIONS: Final = 1000
"""How many of the newest sessions `ls --activity` reads: the server has no index of activities."""
_MAX_CHILDREN: Final = 20
_MAX_TURNS: Final = 20
"""How many turns `show` lists."""


def run(
    request: session_start.RunRequest,
    output_format: OutputFormat,
    *,
    background: bool,
    previews: bool,
    timeout: float | None,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, server: Server) -> int:
        limit = select_timeout(timeout, server)
        started = await session_start.start_turn(client, server, request)
        if background:
            _print_started(started.session_id, output_format)
            return Exit.DONE
        view = _create_view(output_format, previews=previews)
        if request.session is not None and await _is_paused(client, started.session_id):
            view.show_note(f"The session is paused, so the message waits. Run: footplate play {started.session_id}")
        return (
            await session_start.follow_turn(client, started, view, limit=limit, asks=_asks(output_format))
        ).exit_code

    raise typer.Exit(run_with_client(work, profile=profile, as_json=output_format is not OutputFormat.TEXT))


def select_timeout(given: float | None, server: Server) -> float | None:
    """Returns the time limit of a turn: that of the option, the profile, or the default. None: none."""
    if given is None and server.timeout is not None:
        given = parse_timeout(server.timeout)
        if given is None:
            raise ClientError(
                f"The timeout {server.timeout!r} for {server.source} is not a number of seconds. Change "
                "FOOTPLATE_RUN_TIMEOUT, or run `footplate config set timeout SECONDS`."
            )
    return (defaults.RUN_TIMEOUT if given is None else given) or None


def attach(wanted: str, output_format: OutputFormat, *, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> int:
        session_id = await session_start.resolve_session_id(client, wanted)
        if output_format is OutputFormat.TEXT:
            exit_code = await pipelines.follow_open_steps(client, session_id)
            if exit_code is not None:
                return exit_code
        return (
            await session_start.attach_session(
                client, session_id, _create_view(output_format, show_input=True), asks=_asks(output_format)
            )
        ).exit_code

    raise typer.Exit(run_with_client(work, profile=profile, as_json=output_format is not OutputFormat.TEXT))


def _asks(output_format: OutputFormat) -> bool:
    """Whether the user is asked about pending calls."""
    return output_format is OutputFormat.TEXT and approval_prompt.can_ask()


def ls(
    *,
    limit: int,
    statuses: Sequence[str],
    activities: Sequence[str],
    filters: Mapping[str, Any],
    include_archived: bool,
    children_of: str | None,
    pinned: bool,
    quiet: bool,
    as_json: bool,
    profile: str | None,
) -> None:
    projects: dict[str, Project] = {}

    async def work(client: AsyncFootplate, _server: Server) -> list[Session]:
        page_size = 100 if activities else min(limit, 100)
        parent_id = children_of and await session_start.resolve_session_id(client, children_of)
        pages = client.sessions.list(
            limit=page_size,
            statuses=statuses,
            include_archived=include_archived,
            parent_id=parent_id,
            pinned=pinned or None,
            **filters,
        )
        found: list[Session] = []
        seen = 0
        async for session in pages:
            seen += 1
            if not activities or (session.activity and session.activity.state in activities):
                found.append(session)
            if len(found) == limit or (activities and seen == MAX_FILTERED_SESSIONS):
                break
        if not (quiet or as_json):
            projects.update(await _load_projects(client, found))
        return found

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([session.wire() for session in found])
    elif quiet:
        for session in found:
            terminal_io.print_result(session.id)
    else:
        is_filtered = bool(statuses or activities) or any(filters.values())
        session_tables.print_sessions(found, projects, are_children=children_of is not None, is_filtered=is_filtered)


async def _load_projects(client: AsyncFootplate, sessions: Sequence[Session]) -> dict[str, Project]:
    """Returns the projects of the sessions by id, without those that were deleted."""
    wanted = {project_id for session in sessions for project_id in session.project_ids}
    found: dict[str, Project] = {}
    if wanted:
        async for project in client.projects.list(limit=100, include_archived=True):
            if project.id in wanted:
                found[project.id] = project
            if len(found) == len(wanted):
                break
    return found


def show(wanted: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, server: Server) -> SessionOverview:
        session_id = await session_start.resolve_session_id(client, wanted)
        session = await client.sessions.retrieve(session_id)
        if as_json:
            newest = await client.turns.list(session_id, limit=_MAX_TURNS).page()
            return SessionOverview(session, newest.data)
        return await _load_overview(client, server, session)

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json({"session": found.session.wire(), "turns": [turn.wire() for turn in found.turns]})
    else:
        session_tables.print_session(found)


async def _load_overview(client: AsyncFootplate, server: Server, session: Session) -> SessionOverview:
    waits = session.activity is not None and session.activity.state == "waiting_for_answer"
    listed = [one.id async for one in client.approvals.list(session_id=session.id)]
    turns = [turn async for turn in client.turns.list(session.id, limit=100)]
    children = (await client.sessions.list(limit=_MAX_CHILDREN, parent_id=session.id).page()).data
    return SessionOverview(
        session,
        turns[:_MAX_TURNS],
        turn_count=len(turns),
        pending=[await client.approvals.retrieve(event_id) for event_id in listed],
        questions=[one async for one in client.questions.list(session_id=session.id)] if waits else [],
        projects={
            project_id: with_local_path(server, project)
            for project_id, project in (await _load_projects(client, [session, *children])).items()
        },
        team=await members.load_team(client, session),
        queue="" if session.end else await _describe_queue(client, session.id),
        children=children,
        total=await client.sessions.usage(session.id) if children else None,
    )


async def _is_paused(client: AsyncFootplate, session_id: str) -> bool:
    try:
        return not (await client.steps.playback(session_id)).playing
    except NotFound:  # the server is older than queues
        return False


async def _describe_queue(client: AsyncFootplate, session_id: str) -> str:
    try:
        playback = await client.steps.playback(session_id)
        pending = await client.steps.list(session_id, states=["pending"]).page()
    except NotFound:  # the server is older than queues
        return ""
    return step_tables.describe_queue(playback, pending.data, more=pending.next_page is not None)


async def _prepare_log(client: AsyncFootplate, session_id: str, view: TextView, *, follow: bool) -> None:
    """Sets which messages are queued and which calls wait: the events alone do not say it."""
    if not follow:
        # A fork also has the messages that were queued in its parent, but not in its own queue.
        view.queued = {step.id async for step in client.steps.list(session_id, states=["pending"])}
    turns = (await client.turns.list(session_id, limit=1).page()).data
    newest = (await client.events.list(session_id, limit=1, order="desc").page()).data if follow else ()
    view.set_waiting_calls(
        [event_id for turn in turns for event_id in turn.result.pending],
        int(newest[0].position or 0) if newest else 0 if follow else None,
    )


def logs(wanted: str, *, follow: bool, tail: int | None, show_ids: bool, as_json: bool, profile: str | None) -> None:
    view: TurnView = TextView(show_input=True, lines_on_stdout=True)
    if as_json or show_ids:
        view = JsonLinesView() if as_json else LogWithIdsView()

    async def work(client: AsyncFootplate, _server: Server) -> None:
        session_id = await session_start.resolve_session_id(client, wanted)
        if isinstance(view, TextView):
            await _prepare_log(client, session_id, view, follow=follow)
        if follow:
            deltas = () if show_ids else (MESSAGE,)
            stream = client.events.stream(session_id, after="0", deltas=deltas, on_connection=view.connection_changed)
            async with aclosing(cast("Any", stream)) as events:
                async for event in events:
                    view.show_event(event)
        elif tail is not None:
            page = await client.events.list(session_id, limit=tail, order="desc").page()
            events_shown = page.data[::-1]
            for event in await find_missing_calls(client, session_id, events_shown):
                view.recall_event(event)
            for event in events_shown:
                view.show_event(event)
        else:
            async for event in client.events.list(session_id):
                view.show_event(event)

    run_with_client(work, profile=profile, as_json=as_json)


def fork(wanted: session_start.ForkRequest, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Session:
        return await session_start.fork_session(client, wanted)

    forked = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(forked.wire())
    else:
        terminal_io.print_result(forked.id)
        terminal_io.err().print(f'[dim]Continue in the fork: footplate run --session {forked.id} "…"[/]')


def share(
    wanted: str, *, visibility: str | None, team: str | None, owner: str | None, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[Session, Team | None]:
        session_id = await session_start.resolve_session_id(client, wanted)
        fields = await members.resolve_audience(client, visibility, team)
        if owner is not None:
            fields["owner_id"] = await members.resolve_member(client, owner)
        session = await client.sessions.update(session_id, **fields)
        return session, None if as_json else await members.load_team(client, session)

    session, found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(session.wire())
    else:
        session_tables.print_access(session, found)


def interrupt(wanted: str, thread_id: str | None, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[Interrupted, Session]:
        session_id = await session_start.resolve_session_id(client, wanted)
        event = await client.events.interrupt(session_id, thread_id=thread_id)
        pending = [call.id async for call in client.approvals.list(session_id=session_id)]
        # The server processes an interrupt at once if nothing runs and nothing is queued.
        sent = Interrupted(
            session_id=session_id,
            event_id=str(event.id),
            interrupted=event.processed_at is None,
            pending_approvals=pending,
        )
        return sent, await client.sessions.retrieve(session_id)

    sent, session = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(sent.model_dump())
    else:
        session_tables.print_interrupt(session, sent.pending_approvals, interrupted=sent.interrupted)


def end(
    wanted: str,
    *,
    outcome: Literal["completed", "failed", "cancelled"],
    reason: str | None,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Session:
        session_id = await session_start.resolve_session_id(client, wanted)
        return await client.sessions.end(session_id, outcome=outcome, reason=reason)

    session = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(session.wire())
    else:
        session_tables.print_end(session)


def archive(wanted: Sequence[str], *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Session]:
        return [await client.sessions.archive(await session_start.resolve_session_id(client, each)) for each in wanted]

    archived = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([session.wire() for session in archived])
    else:
        for session in archived:
            terminal_io.print_result(session.id)


def remove(wanted: Sequence[str], *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[dict[str, Any]]:
        ids = [await session_start.resolve_session_id(client, each) for each in wanted]
        deleted: list[dict[str, Any]] = []
        for each in ids:
            deleted.append((await client.sessions.delete(each)).wire())
            if saved_ids.recall_id(client.base_url, "session") == each:
                saved_ids.forget_ids(client.base_url, "session")
            if not as_json:  # at once, because a later deletion may fail
                terminal_io.print_result(each)
        return deleted

    deleted = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(deleted)


def _print_started(session_id: str, output_format: OutputFormat) -> None:
    """Prints the session id. In text format, also tells the user how to watch the session."""
    if output_format is OutputFormat.TEXT:
        terminal_io.print_result(session_id)
        terminal_io.err().print(f"[dim]Watch it with: footplate attach {session_id}[/]")
    else:
        print_json_line(Started(session_id=session_id).model_dump())


def _create_view(output_format: OutputFormat, *, previews: bool = False, show_input: bool = False) -> TurnView:
    if output_format is OutputFormat.TEXT:
        return TextView(show_input=show_input)
    return ResultView() if output_format is OutputFormat.JSON else JsonLinesView(previews=previews)
