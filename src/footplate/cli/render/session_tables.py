"""Prints the list of sessions, the details of one, and what an interrupt or an end did to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final

from footplate.cli.render import terminal_io, value_formatting
from footplate.cli.render.resource_tables import print_question
from footplate.cli.render.table_printing import Cell, UntrustedText, print_details, print_widest_rows
from footplate.cli.render.terminal_io import print_note
from footplate.cli.render.tool_call_format import lay_out_call
from footplate.client import Approval, Project, Question, Session, Team, TotalUsage, Turn
from footplate.domain.text.approval_display import describe_call

_COLOURS: Final = {
    "running": "green",
    "waiting_for_sessions": "green",
    "completed": "green",
    "rescheduling": "yellow",
    "retrying": "yellow",
    "waiting_for_approval": "yellow",
    "waiting_for_answer": "yellow",
    "waiting_for_result": "yellow",
    "paused": "yellow",
    "failed": "red",
    "stalled": "red",
}
_LABELS: Final = {
    "waiting_for_approval": "needs approval",
    "waiting_for_answer": "needs answer",
    "waiting_for_result": "needs result",
    "waiting_for_sessions": "sessions run",
}
_TURN_LIMIT: Final = "turn_limit"
_SESSIONS: Final = "sessions"
_STALL_REASONS: Final = {
    "no_worker": "no worker is running",
    "worker_lost": "its worker was lost, and no other worker has taken over yet",
    _TURN_LIMIT: "the limit on concurrent turns is reached",
    "author_disabled": "the author of its next message is disabled",
    "no_backend": "no running worker offers the backend of its next turn",
}
_CHECK_SERVER: Final = "Check the server: footplate doctor"
_STALL_REMEDIES: Final = {
    "no_worker": _CHECK_SERVER,
    "worker_lost": _CHECK_SERVER,
    _TURN_LIMIT: "See all limits: footplate limits",
    "author_disabled": "Hand over the work: footplate members disable AUTHOR --hand-over-to MEMBER",
    "no_backend": "See what workers offer: footplate environments backends",
}
_CHILD_MARK: Final = "└"
_PARENT_CHARACTERS: Final = 6
_FORK_MARK: Final = "↳ "
_PROJECT_COLUMNS: Final = 20
_COMMIT_CHARACTERS: Final = 10
_RESULT_COLUMNS: Final = 80


def print_sessions(
    found: Sequence[Session],
    projects: Mapping[str, Project],
    *,
    are_children: bool = False,
    is_filtered: bool = False,
) -> None:
    """Prints a table. On a narrow terminal, the project is in the same column as the title. Children follow their
    parent if it is in the table. Otherwise the end of its id is before their title, unless all `are_children` of one
    session.
    """
    if not found and is_filtered:
        print_note("No session matches. Omit a filter, or list all: footplate ls")
        return
    if not found:
        print_note('No sessions yet. Start one: footplate run "…"')
        return
    wide_rows: list[list[Cell]] = []
    rows: list[list[Cell]] = []
    for each, mark in _order_by_parent(found, names_parents=not are_children):
        project = _cut(_project_name(each, projects), _PROJECT_COLUMNS)
        title = f"{_FORK_MARK if each.forked_from else ''}{each.title or ''}"
        first: list[Cell] = [each.id, activity_label(each), value_formatting.format_age(each.created_at)]
        row = [UntrustedText(each.agent.model.id), UntrustedText(project), UntrustedText(f"{mark}{title}")]
        wide_rows.append([*first, *row])
        rows.append([*first, UntrustedText(f"{mark}{project}: {title}" if project else f"{mark}{title}")])
    print_widest_rows(
        (["ID", "ACTIVITY", "AGE", "MODEL", "PROJECT", "TITLE"], wide_rows), (["ID", "ACTIVITY", "AGE", "TITLE"], rows)
    )
    reasons = {reason for each in found if (reason := _stall_reason(each))}
    for reason in sorted(reasons):
        state = "Queued" if reason == _TURN_LIMIT else "Stalled"
        print_note(f"{state}: {_STALL_REASONS[reason]}. {_STALL_REMEDIES[reason]}")


def _order_by_parent(found: Sequence[Session], *, names_parents: bool) -> Iterator[tuple[Session, str]]:
    """Yields each session after its parent, with the mark of a child, repeated for each level. `names_parents`:
    the mark names a parent that is not among the sessions.
    """
    ids = {each.id for each in found}
    children: dict[str | None, list[Session]] = {}
    for each in found:
        children.setdefault(each.parent_id if each.parent_id in ids else None, []).append(each)
    waiting = [(each, 0) for each in reversed(children.pop(None, []))]
    while waiting:
        each, level = waiting.pop()
        if level:
            mark = f"{_CHILD_MARK * level} "
        elif each.parent_id and names_parents:
            mark = f"{_CHILD_MARK} of …{each.parent_id[-_PARENT_CHARACTERS:]}: "
        else:
            mark = ""
        yield each, mark
        waiting += [(child, level + 1) for child in reversed(children.get(each.id, []))]


@dataclass(frozen=True)
class SessionOverview:
    """What `footplate show` prints about a session."""

    session: Session
    turns: Sequence[Turn] = ()
    """The newest of `turn_count` turns."""
    turn_count: int = 0
    pending: Sequence[Approval] = ()
    questions: Sequence[Question] = ()
    projects: Mapping[str, Project] = field(default_factory=dict)
    team: Team | None = None
    """The team that can see the session."""
    queue: str = ""
    """Describes the pending steps."""
    children: Sequence[Session] = ()
    """The newest sessions that it has started."""
    total: TotalUsage | None = None
    """The usage of the session and all sessions below it."""


def print_session(overview: SessionOverview) -> None:
    detail, turns, projects = overview.session, overview.turns, overview.projects
    agent = detail.agent
    print_details(
        {
            "id": detail.id,
            "title": _title(detail),
            "activity": _activity_text(detail),
            **_end_details(detail),
            "queue": overview.queue,
            **_access_details(detail, overview.team),
            "agent": UntrustedText(agent.name, f" v{agent.version}"),
            "agent_id": agent.id,
            "model": UntrustedText(agent.model.id),
            "harness": UntrustedText(agent.harness or "the server's default"),
            "conversation": UntrustedText(detail.conversation_id or ""),
            "environment": detail.environment_id,
            "backend": UntrustedText(detail.backend or ""),
            "directory": UntrustedText(str(detail.context.get("directory", ""))),
            **_project_details(detail, projects),
            "created": value_formatting.format_time(detail.created_at),
            "last_interaction": _format_interaction(detail),
            "fork_of": _format_origin(detail),
            "started_by": detail.parent_id or "",
            "spent": value_formatting.format_tokens(detail.usage),
            "with_children": _format_total(overview.total),
        }
    )
    if turns:
        console = terminal_io.out()
        console.print()
        commits = ["COMMIT"] if any(turn.commit for turn in turns) else []
        state = _state(detail)
        awaited = state if state in _LABELS else "waiting_for_result"
        numbers = range(overview.turn_count or len(turns), 0, -1)
        wide_rows, rows = (
            [
                [str(number), *_turn_row(turn, awaited, wide=wide, has_commits=bool(commits))]
                for number, turn in zip(numbers, turns, strict=False)
            ]
            for wide in (True, False)
        )
        print_widest_rows(
            (["#", "STATUS", "AGE", "TOOK", "IN/OUT", *commits, "TURN", "RESULT"], wide_rows),
            (["#", "STATUS", "AGE", "TURN", "RESULT"], rows),
        )
    if overview.children:
        terminal_io.out().print("\nSessions that it has started, newest first:")
        print_sessions(overview.children, projects, are_children=True)
    reason = _stall_reason(detail)
    if reason in {"author_disabled", "no_backend"}:
        print_note(_STALL_REMEDIES[reason])
    if overview.pending:
        console = terminal_io.out()
        for each in overview.pending:
            shown = describe_call(each.wire())
            console.print(f"\n[yellow]needs approval[/]  {each.id}  {terminal_io.escape_shown(shown.name)}")
            for line in lay_out_call(shown, console.width):
                terminal_io.print_exactly(console, line)
    for question in overview.questions:
        terminal_io.out().print(f"\n[yellow]needs answer[/]  {question.id}")
        print_question(question)


def print_access(detail: Session, team: Team | None) -> None:
    """Prints who owns a session and who can see it."""
    print_details({"id": detail.id, "title": _title(detail), **_access_details(detail, team)})


def _access_details(detail: Session, team: Team | None) -> dict[str, Cell]:
    """Returns nothing for a session of a server that is older than visibilities."""
    if detail.owner is None:
        return {}
    owner = UntrustedText(detail.owner.name or "", f" ({detail.owner.id})")
    visibility: Cell = detail.visibility
    if detail.visibility == "team":
        visibility = UntrustedText(f"team {team.name}" if team else "team", f" ({detail.team_id})")
    elif detail.visibility == "private":
        visibility = "private: its owner and administrators"
    creator = detail.created_by if detail.created_by != detail.owner.id else None
    return {"owner": owner, "visibility": visibility, "created_by": creator or ""}


def print_interrupt(session: Session, pending: Sequence[str], *, interrupted: bool) -> None:
    """Reports what an interrupt did. `pending` are the ids of the calls that wait for approval."""
    reason = _stall_reason(session)
    if interrupted and reason:
        print_note(f"The interrupt takes effect when {session.id} continues. It is stalled: {_STALL_REASONS[reason]}.")
        return
    if interrupted:
        print_note(f"Interrupted {session.id}.")
        return
    print_note("Nothing is running.")
    if pending:
        calls = "1 call needs" if len(pending) == 1 else f"{len(pending)} calls need"
        print_note(f"{calls} approval: {' '.join(pending)}")
        print_note("Decide with `footplate approve ID` or `footplate deny ID`.")
    elif session.activity and session.activity.state == "waiting_for_answer":
        print_note("The turn asks a question. List it with `footplate questions`.")
    elif _state(session) == "waiting_for_result":
        print_note("The turn waits for the result of a custom tool (user.custom_tool_result).")


def print_end(session: Session) -> None:
    """Reports that a session has ended, or that it ends when its turn has stopped."""
    if session.end is None:
        print_note(f"{session.id} ends when its turn has stopped.")
    else:
        print_note(f"Ended {session.id}: {session.end.outcome}. Go on in a fork: footplate fork {session.id}")


def _end_details(detail: Session) -> dict[str, Cell]:
    if detail.end is None:
        return {"ends": "when its queue is empty" if detail.ends_when_done else ""}
    owner, member = detail.owner, detail.end.ended_by
    name = owner.name if owner is not None and owner.id == member else None
    time = value_formatting.format_time(detail.end.ended_at)
    by = UntrustedText(f"{time} by {name or member}" if member else time)
    return {"ended": by, "reason": UntrustedText(detail.end.reason or "")}


def _format_interaction(detail: Session) -> str:
    if detail.last_interaction_at is None:
        return ""
    return f"{value_formatting.format_time(detail.last_interaction_at)} · {detail.interactions:,} in all"


def _format_total(total: TotalUsage | None) -> str:
    """Returns nothing for a session that has started no other."""
    if total is None or total.sessions <= 1:
        return ""
    return f"{value_formatting.format_tokens(total.usage)} · {total.sessions} sessions"


def _format_origin(detail: Session) -> str:
    origin = detail.forked_from
    return f"{origin.session_id} at {origin.event_id or 'its beginning'}" if origin else ""


def _turn_row(turn: Turn, awaited: str, *, wide: bool, has_commits: bool) -> list[Cell]:
    """`awaited` is what the session's turn waits for, if it is parked."""
    took = ""
    if turn.started_at and turn.ended_at:
        took = value_formatting.format_seconds((turn.ended_at - turn.started_at).total_seconds())
    tokens = f"{turn.usage.input_tokens:,}/{turn.usage.output_tokens:,}"
    commit = [(turn.commit or "")[:_COMMIT_CHARACTERS]] if has_commits else []
    result = (turn.result.error or turn.result.text).strip().partition("\n")[0]
    status = "failed" if turn.step_failed else turn.status
    return [
        _colour_label(awaited if status == "awaiting_tool_results" else status),
        value_formatting.format_age(turn.created_at),
        *([took, tokens, *commit] if wide else []),
        f"[dim]{turn.id}[/]",
        UntrustedText(_cut(result, _RESULT_COLUMNS)),
    ]


def _cut(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def _title(detail: Session) -> UntrustedText:
    return UntrustedText(detail.title or "")


def _project_name(detail: Session, projects: Mapping[str, Project]) -> str:
    """Returns the name of the session's first project, or of its directory. `+1`: it has one more project."""
    if not detail.project_ids:
        directory = str(detail.context.get("directory", ""))
        return f"{PurePath(directory).name}/" if directory else ""
    first, *others = detail.project_ids
    name = projects[first].name if first in projects else first
    return f"{name} +{len(others)}" if others else name


def _project_details(detail: Session, projects: Mapping[str, Project]) -> dict[str, Cell]:
    shown: dict[str, Cell] = {}
    for number, project_id in enumerate(detail.project_ids, 1):
        project, base = projects.get(project_id), detail.bases.get(project_id)
        name = project.name if project else project_id
        suffix = "" if number == 1 else f" {number}"
        shown[f"project{suffix}"] = UntrustedText(name, f" ({project_id})" if project else " (deleted)")
        if project:
            below = " in the server's projects directory" if project.path and not project.path.startswith("/") else ""
            shown[f"location{suffix}"] = UntrustedText(project.path or project.url or "", below)
        if base:
            shown[f"base{suffix}"] = UntrustedText(f"{base.get('branch')} at {base.get('commit') or 'no commit'}")
    return shown


def activity_label(detail: Session) -> str:
    if detail.archived_at:
        return "archived"
    if detail.end:
        return f"ended: {_colour_label(detail.end.outcome)}"
    return _colour_label(_state(detail))


def _state(detail: Session) -> str:
    """Returns the state of the activity, with an own one for a session that waits for others and not for a result."""
    if detail.activity is None:
        return detail.status
    return "waiting_for_sessions" if detail.activity.reason == _SESSIONS else detail.activity.state


def _stall_reason(detail: Session) -> str | None:
    """Returns why the session does not continue, if something outside of it is the cause."""
    reason = detail.activity.reason if detail.activity else None
    return None if reason == _SESSIONS else reason


def _activity_text(detail: Session) -> str:
    reason = _stall_reason(detail)
    return f"{activity_label(detail)}: {_STALL_REASONS[reason]}" if reason else activity_label(detail)


def _colour_label(status: str) -> str:
    label, colour = _LABELS.get(status, status.replace("_", " ")), _COLOURS.get(status)
    return f"[{colour}]{label}[/]" if colour else label
