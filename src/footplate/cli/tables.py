"""Tables for people: as wide as the terminal, and without frames, so that they can be copied."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from footplate.cli import output, wording
from footplate.client import Agent, Approval, AuditEntry, Environment, File, Project, Session, Turn

_STATUS = {"running": "green", "rescheduling": "yellow", "failed": "red", "completed": "green"}
_WIDE = 100
_LEAST = 8
"""Columns that the last one needs."""


def sessions(found: Sequence[Session]) -> None:
    if not found:
        _say('No sessions yet. Start one: footplate run "…"')
        return
    console = output.out()
    wide = console.width >= _WIDE or not console.is_terminal
    rows = [
        [
            each.id,
            _coloured("archived" if each.archived_at else each.status),
            wording.age(each.created_at),
            *([escape(each.agent.model.id)] if wide else []),
            _title(each),
        ]
        for each in found
    ]
    _print(console, ["ID", "STATUS", "AGE", *(["MODEL"] if wide else []), "TITLE"], rows)


def session(detail: Session, turns: Sequence[Turn]) -> None:
    agent = detail.agent
    _details(
        id=detail.id,
        title=_title(detail),
        status=_coloured("archived" if detail.archived_at else detail.status),
        agent=f"{escape(agent.name)} v{agent.version}",
        agent_id=agent.id,
        model=escape(agent.model.id),
        environment=detail.environment_id,
        directory=escape(str(detail.context.get("directory", ""))),
        projects=" ".join(detail.project_ids),
        created=_moment(detail.created_at),
        fork_of=_origin(detail),
        spent=wording.tokens(detail.usage),
    )
    if turns:
        console = output.out()
        console.print()
        wide = console.width >= _WIDE or not console.is_terminal
        headings = ["STATUS", "AGE", "TOOK", *(["IN/OUT"] if wide else []), "TURN", "RESULT"]
        _print(console, headings, [_turn(turn, wide=wide) for turn in turns])


def _origin(detail: Session) -> str:
    origin = detail.forked_from
    return f"{origin.session_id} at {origin.event_id or 'its beginning'}" if origin else ""


def _turn(turn: Turn, *, wide: bool) -> list[str]:
    took = ""
    if turn.started_at and turn.ended_at:
        took = wording.seconds((turn.ended_at - turn.started_at).total_seconds())
    tokens = f"{turn.usage.input_tokens:,}/{turn.usage.output_tokens:,}"
    result = wording.one_line(turn.result.error or turn.result.text)
    return [
        _coloured(turn.status),
        wording.age(turn.created_at),
        took,
        *([tokens] if wide else []),
        f"[dim]{turn.id}[/]",
        escape(result),
    ]


def agents(found: Sequence[Agent]) -> None:
    if not found:
        _say("No agents yet. `footplate run` makes one, or: footplate agents create --name … --model …")
        return
    rows = [[each.id, f"v{each.version}", wording.age(each.updated_at), escape(each.name)] for each in found]
    _print(output.out(), ["ID", "VER", "AGE", "NAME"], rows)


def agent(detail: Agent) -> None:
    limits = " ".join(f"{name}={value}" for name, value in (detail.limits or {}).items())
    _details(
        id=detail.id,
        name=escape(detail.name),
        version=f"v{detail.version}" + (" · archived" if detail.archived_at else ""),
        model=escape(detail.model.id),
        harness=escape(detail.harness or "the server's default"),
        tools=escape(", ".join(_tools(detail.tools)) or "none"),
        limits=escape(limits or "the server's"),
        system=escape(detail.system or ""),
        created=_moment(detail.created_at),
        updated=_moment(detail.updated_at),
    )


def environments(found: Sequence[Environment]) -> None:
    if not found:
        _say("No environments yet. `footplate run` makes one, or: footplate environments create --name …")
        return
    rows = [[each.id, wording.age(each.created_at), escape(each.name)] for each in found]
    _print(output.out(), ["ID", "AGE", "NAME"], rows)


def environment(detail: Environment) -> None:
    _details(
        id=detail.id,
        name=escape(detail.name) + (" · archived" if detail.archived_at else ""),
        about=escape(detail.description or ""),
        kind=escape(str(detail.config.get("type", ""))),
        created=_moment(detail.created_at),
        updated=_moment(detail.updated_at),
    )


def projects(found: Sequence[Project]) -> None:
    if not found:
        _say("No projects yet. `footplate run --project PATH` makes one, or: footplate projects create PATH|URL")
        return
    rows = [
        [each.id, wording.age(each.created_at), each.trust, escape(each.name), escape(each.path or each.url or "")]
        for each in found
    ]
    _print(output.out(), ["ID", "AGE", "TRUST", "NAME", "PLACE"], rows)


def files(found: Sequence[File]) -> None:
    if not found:
        _say("No files yet. `footplate run --file PATH` uploads one, or: footplate files upload PATH")
        return
    rows = [
        [each.id, wording.age(each.created_at), str(each.size_bytes), escape(each.mime_type), escape(each.filename)]
        for each in found
    ]
    _print(output.out(), ["ID", "AGE", "BYTES", "TYPE", "NAME"], rows)


def approvals(found: Sequence[Approval]) -> None:
    if not found:
        _say("Nothing waits for a person's word.")
        return
    rows = [
        [
            each.id,
            wording.age(each.created_at),
            each.session_id,
            escape(wording.one_line(f"{each.mcp_server_name or ''} {each.name}")),
            escape(wording.one_line(_gist(each.input or {}))),
        ]
        for each in found
    ]
    _print(output.out(), ["ID", "AGE", "SESSION", "TOOL", "INPUT"], rows)
    _say("Answer with `footplate approve ID` or `footplate deny ID`.")


def audit(found: Sequence[AuditEntry]) -> None:
    if not found:
        _say("Nothing was decided yet.")
        return
    rows = [
        [
            wording.age(each.created_at),
            each.kind,
            each.outcome or "",
            escape(each.principal or each.layer or ""),
            escape(wording.one_line(each.tool or "")),
            escape(wording.one_line(json.dumps(each.content, ensure_ascii=False) if each.content else "")),
        ]
        for each in found
    ]
    _print(output.out(), ["AGE", "KIND", "OUTCOME", "BY", "TOOL", "WHY"], rows)


def _gist(given: Mapping[str, Any]) -> str:
    """The command or the path, or all of it."""
    for name in ("command", "file_path", "path", "url"):
        if isinstance(given.get(name), str):
            return str(given[name])
    return json.dumps(given, ensure_ascii=False)


def project(detail: Project) -> None:
    _details(
        id=detail.id,
        name=escape(detail.name) + (" · archived" if detail.archived_at else ""),
        path=escape(detail.path or ""),
        url=escape(detail.url or ""),
        branch=escape(detail.branch or "what is checked out"),
        trust=detail.trust,
        created=_moment(detail.created_at),
        updated=_moment(detail.updated_at),
    )


def plain(rows: Sequence[Sequence[str]], *headings: str) -> None:
    _print(output.out(), headings, [[escape(cell) for cell in row] for row in rows])


def _print(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The last column gives way when there is no room; ids and numbers stay whole, one below the other if need be."""
    lines = [[Text(heading, style="dim") for heading in headings], *([Text.from_markup(c) for c in r] for r in rows)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*lines, strict=True)]
    taken = sum(widths[:-1]) + 2 * (len(widths) - 1)
    if taken + _LEAST > console.width:
        for row in rows:
            _details(**dict(zip([heading.lower() or "*" for heading in headings], row, strict=True)))
            console.print()
        return
    for line in lines:
        for cell, width in zip(line[:-1], widths[:-1], strict=True):
            cell.pad_right(width + 2 - cell.cell_len)
        line[-1].truncate(console.width - taken, overflow="ellipsis")
        console.print(Text.assemble(*line))


def _details(**values: str) -> None:
    """A name and a value on each line; what is empty is left out, what is long goes on below itself."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")
    for name, value in values.items():
        if value:
            rows.add_row(name.replace("_", " "), value)
    output.out().print(rows)


def _say(text: str) -> None:
    output.err().print(escape(text))


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S %Z} · {wording.age(moment)} ago"


def _tools(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A toolset by its name, with what is switched off or on in it; a custom tool by its own."""
    for tool in tools:
        changed = [
            f"{'+' if each.get('enabled') else '-'}{each.get('name')}"
            for each in tool.get("configs", [])
            if each.get("enabled") != tool.get("default_config", {}).get("enabled", True)
        ]
        yield str(tool.get("name") or tool.get("type")) + (f" ({' '.join(changed)})" if changed else "")


def _title(detail: Session) -> str:
    return escape(wording.one_line(detail.title or ""))


def _coloured(status: str) -> str:
    colour = _STATUS.get(status)
    return f"[{colour}]{status}[/]" if colour else status
