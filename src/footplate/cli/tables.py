"""Prints tables of sessions, agents and other resources, without frames so that they can be copied."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from footplate.cli import output, wording
from footplate.cli.call_view import lay_out_call
from footplate.cli.table_layout import Cell, Outside, print_details, print_rows
from footplate.client import Agent, Approval, AuditEntry, Environment, File, Project, Session, Turn
from footplate.domain.call_display import ShownCall, describe_call

_STATUS = {"running": "green", "rescheduling": "yellow", "failed": "red", "completed": "green"}
_WIDE = 100
_MOST_LINES = 12
"""Maximum lines per field of a call, in a list on a terminal."""


def sessions(found: Sequence[Session]) -> None:
    if not found:
        _say('No sessions yet. Start one: footplate run "…"')
        return
    console = output.out()
    wide = console.width >= _WIDE or not console.is_terminal
    rows: list[list[Cell]] = [
        [
            each.id,
            _coloured("archived" if each.archived_at else each.status),
            wording.age(each.created_at),
            *([Outside(each.agent.model.id)] if wide else []),
            _title(each),
        ]
        for each in found
    ]
    print_rows(["ID", "STATUS", "AGE", *(["MODEL"] if wide else []), "TITLE"], rows)


def session(detail: Session, turns: Sequence[Turn], waiting: Sequence[Approval] = ()) -> None:
    agent = detail.agent
    print_details(
        {
            "id": detail.id,
            "title": _title(detail),
            "status": _coloured("archived" if detail.archived_at else detail.status),
            "agent": Outside(agent.name, f" v{agent.version}"),
            "agent_id": agent.id,
            "model": Outside(agent.model.id),
            "environment": detail.environment_id,
            "directory": Outside(str(detail.context.get("directory", ""))),
            "projects": " ".join(detail.project_ids),
            "created": _moment(detail.created_at),
            "fork_of": _origin(detail),
            "spent": wording.tokens(detail.usage),
        }
    )
    if turns:
        console = output.out()
        console.print()
        wide = console.width >= _WIDE or not console.is_terminal
        headings = ["STATUS", "AGE", "TOOK", *(["IN/OUT"] if wide else []), "TURN", "RESULT"]
        print_rows(headings, [_turn(turn, wide=wide) for turn in turns])
    if waiting:
        console = output.out()
        for each in waiting:
            shown = describe_call(each.wire())
            console.print(f"\n[yellow]needs approval[/]  {each.id}  {output.escape_shown(shown.name)}")
            for line in lay_out_call(shown, console.width):
                output.print_exactly(console, line)


def _origin(detail: Session) -> str:
    origin = detail.forked_from
    return f"{origin.session_id} at {origin.event_id or 'its beginning'}" if origin else ""


def _turn(turn: Turn, *, wide: bool) -> list[Cell]:
    took = ""
    if turn.started_at and turn.ended_at:
        took = wording.seconds((turn.ended_at - turn.started_at).total_seconds())
    tokens = f"{turn.usage.input_tokens:,}/{turn.usage.output_tokens:,}"
    result = turn.result.error or turn.result.text
    return [
        _coloured(turn.status),
        wording.age(turn.created_at),
        took,
        *([tokens] if wide else []),
        f"[dim]{turn.id}[/]",
        Outside(result),
    ]


def agents(found: Sequence[Agent]) -> None:
    if not found:
        _say("No agents yet. `footplate run` creates one, or: footplate agents create --name … --model …")
        return
    rows: list[list[Cell]] = [
        [each.id, f"v{each.version}", wording.age(each.updated_at), Outside(each.name)] for each in found
    ]
    print_rows(["ID", "VER", "AGE", "NAME"], rows)


def agent(detail: Agent) -> None:
    limits = " ".join(f"{name}={value}" for name, value in (detail.limits or {}).items())
    print_details(
        {
            "id": detail.id,
            "name": Outside(detail.name),
            "version": f"v{detail.version}" + (" · archived" if detail.archived_at else ""),
            "model": Outside(detail.model.id),
            "harness": Outside(detail.harness or "the server's default"),
            "tools": Outside(", ".join(_tools(detail.tools)) or "none"),
            "limits": Outside(limits or "the server's default"),
            "system": Outside(detail.system or ""),
            "created": _moment(detail.created_at),
            "updated": _moment(detail.updated_at),
        }
    )


def environments(found: Sequence[Environment]) -> None:
    if not found:
        _say("No environments yet. `footplate run` creates one, or: footplate environments create --name …")
        return
    rows: list[list[Cell]] = [[each.id, wording.age(each.created_at), Outside(each.name)] for each in found]
    print_rows(["ID", "AGE", "NAME"], rows)


def environment(detail: Environment) -> None:
    print_details(
        {
            "id": detail.id,
            "name": Outside(detail.name, " · archived" if detail.archived_at else ""),
            "about": Outside(detail.description or ""),
            "kind": Outside(str(detail.config.get("type", ""))),
            "created": _moment(detail.created_at),
            "updated": _moment(detail.updated_at),
        }
    )


def projects(found: Sequence[Project]) -> None:
    if not found:
        _say("No projects yet. `footplate run --project PATH` creates one, or: footplate projects create PATH|URL")
        return
    rows: list[list[Cell]] = [
        [each.id, wording.age(each.created_at), each.trust, Outside(each.name), Outside(each.path or each.url or "")]
        for each in found
    ]
    print_rows(["ID", "AGE", "TRUST", "NAME", "LOCATION"], rows)


def files(found: Sequence[File]) -> None:
    if not found:
        _say("No files yet. `footplate run --file PATH` uploads one, or: footplate files upload PATH")
        return
    rows: list[list[Cell]] = [
        [each.id, wording.age(each.created_at), str(each.size_bytes), Outside(each.mime_type), Outside(each.filename)]
        for each in found
    ]
    print_rows(["ID", "AGE", "BYTES", "TYPE", "NAME"], rows)


def approvals(found: Sequence[Approval]) -> None:
    if not found:
        _say("No calls need approval.")
        return
    console = output.out()
    most_lines = _MOST_LINES if console.is_terminal else None
    for each in found:
        shown = describe_call(each.wire())
        head = f"{each.id}  {wording.age(each.created_at):<4}  {each.session_id}"
        tool = f"[bold]{output.escape_shown(shown.name)}[/]"
        print_details({"id": head, "tool": tool, **_reasons(shown)})
        for line in lay_out_call(shown, console.width, most_lines):
            output.print_exactly(console, line)
        console.print()
    _say("Decide with `footplate approve ID`, which shows the full call, or `footplate deny ID`.")


def _reasons(shown: ShownCall) -> dict[str, Cell]:
    values = {"agent": shown.agent_name, "why": shown.reason}
    return {name: output.escape_shown(value) for name, value in values.items() if value}


def audit(found: Sequence[AuditEntry]) -> None:
    if not found:
        _say("The audit trail is empty.")
        return
    rows: list[list[Cell]] = [
        [
            wording.age(each.created_at),
            each.kind,
            each.outcome or "",
            Outside(each.principal or each.layer or ""),
            Outside(each.tool or ""),
            Outside(json.dumps(each.content, ensure_ascii=False) if each.content else ""),
        ]
        for each in found
    ]
    print_rows(["AGE", "KIND", "OUTCOME", "BY", "TOOL", "WHY"], rows)


def project(detail: Project) -> None:
    print_details(
        {
            "id": detail.id,
            "name": Outside(detail.name, " · archived" if detail.archived_at else ""),
            "path": Outside(detail.path or ""),
            "url": Outside(detail.url or ""),
            "branch": Outside(detail.branch or "the branch that is checked out"),
            "trust": detail.trust,
            "created": _moment(detail.created_at),
            "updated": _moment(detail.updated_at),
        }
    )


def plain(rows: Sequence[Sequence[str]], *headings: str) -> None:
    print_rows(headings, [[Outside(cell) for cell in row] for row in rows])


def _say(text: str) -> None:
    output.err().print(text, markup=False)


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S %Z} · {wording.age(moment)} ago"


def _tools(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the name of each toolset, with the tools that are enabled or disabled in it, and of each custom tool."""
    for tool in tools:
        changed = [
            f"{'+' if each.get('enabled') else '-'}{each.get('name')}"
            for each in tool.get("configs", [])
            if each.get("enabled") != tool.get("default_config", {}).get("enabled", True)
        ]
        yield str(tool.get("name") or tool.get("type")) + (f" ({' '.join(changed)})" if changed else "")


def _title(detail: Session) -> Outside:
    return Outside(detail.title or "")


def _coloured(status: str) -> str:
    colour = _STATUS.get(status)
    return f"[{colour}]{status}[/]" if colour else status
