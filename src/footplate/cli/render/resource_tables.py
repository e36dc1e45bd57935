"""Prints tables of agents, projects, approvals and other resources, without frames so that they can be copied."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from footplate.cli.render import audit_text, terminal_io, value_formatting
from footplate.cli.render.question_format import render_question
from footplate.cli.render.table_printing import Cell, UntrustedText, print_details, print_rows
from footplate.cli.render.terminal_io import print_note
from footplate.cli.render.tool_call_format import lay_out_call
from footplate.client import (
    Agent,
    Approval,
    AuditEntry,
    Backend,
    Environment,
    File,
    Limit,
    ModelInfo,
    Project,
    Question,
    TerminalRecording,
    UsageLine,
    UsageReport,
)
from footplate.domain.text.approval_display import ShownCall, describe_call
from footplate.domain.text.visible_text import count_columns, show_line, wrap_line

WIDE_COLUMNS: Final = 100
_NAME_COLUMNS: Final = 14
_WIDE_NAME_COLUMNS: Final = 30
_SHORT_ID: Final = 8
_MAX_LINES = 12
"""Maximum lines per field of a call, in a list on a terminal."""


def print_agents(found: Sequence[Agent]) -> None:
    if not found:
        print_note("No agents yet. `footplate run` creates one, or: footplate agents create --name … --model …")
        return
    rows: list[list[Cell]] = [
        [each.id, f"v{each.version}", value_formatting.format_age(each.updated_at), UntrustedText(each.name)]
        for each in found
    ]
    print_rows(["ID", "VER", "AGE", "NAME"], rows)


def print_agent(detail: Agent) -> None:
    limits = " ".join(f"{name}={value}" for name, value in (detail.limits or {}).items())
    print_details(
        {
            "id": detail.id,
            "name": UntrustedText(detail.name),
            "version": f"v{detail.version}" + (" · archived" if detail.archived_at else ""),
            "model": UntrustedText(detail.model.id),
            "harness": UntrustedText(detail.harness or "the server's default"),
            "tools": UntrustedText(", ".join(_tool_names([*detail.tools, *(detail.server_toolsets or [])])) or "none"),
            "limits": UntrustedText(limits or "the server's default"),
            "system": UntrustedText(detail.system or ""),
            "created": value_formatting.format_time(detail.created_at),
            "updated": value_formatting.format_time(detail.updated_at),
        }
    )


def print_environments(found: Sequence[Environment]) -> None:
    if not found:
        print_note("No environments yet. `footplate run` creates one, or: footplate environments create --name …")
        return
    rows: list[list[Cell]] = [
        [each.id, value_formatting.format_age(each.created_at), UntrustedText(each.name)] for each in found
    ]
    print_rows(["ID", "AGE", "NAME"], rows)


def print_backends(found: Sequence[Backend]) -> None:
    rows: list[list[Cell]] = [
        [UntrustedText(each.name), str(each.workers), "default" if each.is_default else ""] for each in found
    ]
    print_rows(["BACKEND", "WORKERS", ""], rows)


def print_environment(detail: Environment) -> None:
    print_details(
        {
            "id": detail.id,
            "name": UntrustedText(detail.name, " · archived" if detail.archived_at else ""),
            "about": UntrustedText(detail.description or ""),
            "kind": UntrustedText(str(detail.config.get("type", ""))),
            "backend": UntrustedText(str(detail.config.get("backend", ""))),
            "created": value_formatting.format_time(detail.created_at),
            "updated": value_formatting.format_time(detail.updated_at),
        }
    )


def print_projects(found: Sequence[Project]) -> None:
    if not found:
        print_note(
            "No projects yet. `footplate run --project PATH` creates one, or: footplate projects create PATH|URL"
        )
        return
    rows: list[list[Cell]] = [
        [
            each.id,
            value_formatting.format_age(each.created_at),
            each.trust,
            UntrustedText(each.name),
            UntrustedText(each.path or each.url or ""),
        ]
        for each in found
    ]
    print_rows(["ID", "AGE", "TRUST", "NAME", "LOCATION"], rows)


def print_files(found: Sequence[File]) -> None:
    if not found:
        print_note("No files yet. `footplate run --file PATH` uploads one, or: footplate files upload PATH")
        return
    rows: list[list[Cell]] = [
        [
            each.id,
            value_formatting.format_age(each.created_at),
            str(each.size_bytes),
            UntrustedText(each.mime_type),
            UntrustedText(each.filename, "" if each.visibility == "organisation" else f" · {each.visibility}"),
        ]
        for each in found
    ]
    print_rows(["ID", "AGE", "BYTES", "TYPE", "NAME"], rows)


def print_recordings(found: Sequence[TerminalRecording]) -> None:
    if not found:
        print_note("No recordings. A person's shell is recorded when it has been closed: footplate attach --terminal")
        return
    rows: list[list[Cell]] = [
        [each.id, value_formatting.format_age(each.created_at), str(each.size_bytes)] for each in found
    ]
    print_rows(["ID", "AGE", "BYTES"], rows)


def print_approvals(found: Sequence[Approval]) -> None:
    if not found:
        print_note("No calls need approval.")
        return
    console = terminal_io.out()
    max_lines = _MAX_LINES if console.is_terminal else None
    for each in found:
        shown = describe_call(each.wire())
        head = f"{each.id}  {value_formatting.format_age(each.created_at):<4}  {each.session_id}"
        tool = f"[bold]{terminal_io.escape_shown(shown.name)}[/]"
        print_details({"id": head, "tool": tool, **_reasons(shown)})
        for line in lay_out_call(shown, console.width, max_lines):
            terminal_io.print_exactly(console, line)
        console.print()
    print_note("Decide with `footplate approve ID`, which shows the full call, or `footplate deny ID`.")


def print_questions(found: Sequence[Question]) -> None:
    if not found:
        print_note("No agent asks a question.")
        return
    for each in found:
        head = f"{each.id}  {value_formatting.format_age(each.created_at):<4}  {each.session_id}"
        print_details({"id": head, "title": UntrustedText(each.session_title or "")})
        print_question(each)
        terminal_io.out().print()
    print_note("Answer with `footplate answer ID`.")


def print_question(question: Question) -> None:
    console = terminal_io.out()
    for line in render_question(question, console.width):
        terminal_io.print_exactly(console, line)


def _reasons(shown: ShownCall) -> dict[str, Cell]:
    values = {"agent": shown.agent_name, "why": shown.reason}
    return {name: terminal_io.escape_shown(value) for name, value in values.items() if value}


def print_audit(found: Sequence[AuditEntry]) -> None:
    if not found:
        print_note("The audit trail is empty.")
        return
    console = terminal_io.out()
    wide = console.width >= WIDE_COLUMNS or not console.is_terminal
    limit = _WIDE_NAME_COLUMNS if wide else _NAME_COLUMNS
    rows: list[list[Cell]] = [
        [
            f"{each.created_at:%Y-%m-%d %H:%M:%S}" if wide else value_formatting.format_age(each.created_at),
            audit_text.describe_outcome(each),
            audit_text.describe_decider(each),
            _shorten_name(each.principal_name or "", limit),
            _shorten_name(each.session_title or (each.session_id or "")[-_SHORT_ID:], limit),
            UntrustedText(audit_text.describe_subject(each)),
        ]
        for each in found
    ]
    print_rows(["TIME" if wide else "AGE", "DECISION", "BY", "MEMBER", "SESSION", "CALL"], rows)


def _shorten_name(name: str, max_columns: int) -> str:
    shown = show_line(name)
    if count_columns(shown) > max_columns:
        shown = f"{wrap_line(shown, max_columns - 1)[0].rstrip()}…"
    return terminal_io.escape_shown(shown)


def print_models(found: Sequence[ModelInfo]) -> None:
    rows: list[list[Cell]] = [[UntrustedText(each.id), UntrustedText(each.provider)] for each in found]
    print_rows(["MODEL", "PROVIDER"], rows)


def print_limits(found: Sequence[Limit]) -> None:
    rows: list[list[Cell]] = [
        [
            each.name,
            UntrustedText(each.member_name or each.member_id or each.scope.replace("_", " ")),
            "" if each.used is None else f"{each.used:,g}",
            "no limit" if each.value is None else f"{each.value:,}",
        ]
        for each in found
    ]
    print_rows(["LIMIT", "SCOPE", "USED", "OF"], rows)


def print_usage(report: UsageReport, group_by: Sequence[str], names: Mapping[str, str]) -> None:
    """`names`: of projects, by their id."""
    if not report.data:
        print_note("No turns in this period.")
        return
    headings = ["TURNS", "COMPLETED", "AVERAGE", "REQUESTS", *(["CALLS", "FAILED"] if "tool" in group_by else [])]
    rows: list[list[Cell]] = [
        [
            *(UntrustedText(names.get(value := _group_value(line, name), value)) for name in group_by),
            f"{line.turns:,}",
            _percent(line.success_rate),
            "" if line.average_seconds is None else value_formatting.format_seconds(line.average_seconds),
            f"{line.iterations:,}",
            *([] if line.tool_calls is None else [f"{line.tool_calls.calls:,}", f"{line.tool_calls.failed:,}"]),
            UntrustedText(value_formatting.format_tokens(line.usage)),
        ]
        for line in report.data
    ]
    print_rows([*(name.upper() for name in group_by), *headings, "TOKENS AND COST"], rows)


def _group_value(line: UsageLine, name: str) -> str:
    if name == "member" and line.member_name:
        return line.member_name
    value = getattr(line, name)
    if isinstance(value, dict):
        return ", ".join(f"{key}={part}" for key, part in value.items())
    return f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime) else str(value or "none")


def _percent(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1%}"


def print_project(detail: Project) -> None:
    print_details(
        {
            "id": detail.id,
            "name": UntrustedText(detail.name, " · archived" if detail.archived_at else ""),
            "path": UntrustedText(detail.path or ""),
            "url": UntrustedText(detail.url or ""),
            "branch": UntrustedText(detail.branch or "the branch that is checked out"),
            "trust": detail.trust,
            **({"setup": UntrustedText(detail.setup)} if detail.setup else {}),
            **(
                {"cached": UntrustedText(", ".join(detail.cached_directories) or "no directories")}
                if detail.cached_directories is not None
                else {}
            ),
            "created": value_formatting.format_time(detail.created_at),
            "updated": value_formatting.format_time(detail.updated_at),
        }
    )


def print_plain_table(rows: Sequence[Sequence[str]], *headings: str) -> None:
    print_rows(headings, [[UntrustedText(cell) for cell in row] for row in rows])


def _tool_names(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the name of each toolset, with the tools that are enabled or disabled in it, and of each custom tool. A
    server-side toolset has no type.
    """
    for tool in tools:
        changed = [
            f"{'+' if each.get('enabled') else '-'}{each.get('name')}"
            for each in tool.get("configs", [])
            if each.get("enabled") != tool.get("default_config", {}).get("enabled", True)
        ]
        name = str(tool.get("name") or tool.get("type"))
        yield (name if tool.get("type") else f"toolset {name}") + (f" ({' '.join(changed)})" if changed else "")
