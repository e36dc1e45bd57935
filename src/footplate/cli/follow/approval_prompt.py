"""Asks the user at the terminal to approve pending tool calls, while `footplate run` or `footplate attach` follows the
turn.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from rich.text import Text

from footplate.cli.follow import input_editor
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import escape_shown
from footplate.cli.render.tool_call_format import lay_out_call, lay_out_text
from footplate.client import Approval
from footplate.domain.policy.permissions import TOOL_NAMES
from footplate.domain.text.approval_display import describe_call

_YES: Final = frozenset({"y", "yes"})
_NO: Final = frozenset({"n", "no"})
_STOP: Final = frozenset({"q", "quit"})
_MIN_PAGE_LINES: Final = 10
_SESSION: Final = frozenset({"s", "session"})
_EDIT: Final = frozenset({"e", "edit"})


@dataclass(frozen=True, slots=True)
class TypedDecision:
    """A decision that the user made at the terminal."""

    result: Literal["allow", "deny"]
    updated_input: dict[str, Any] | None = None
    session_rule: str | None = None


def can_ask() -> bool:
    """Whether the user can be asked. Not on Windows, where asyncio cannot wait for terminal input."""
    return sys.platform != "win32" and sys.stdin.isatty() and sys.stderr.isatty()


def discard_typed_input() -> None:
    """Discards input that was typed before the question was shown."""
    import termios  # not available on Windows, where the user is not asked

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def ask_decision(
    approval: Approval, *, updated_input: Mapping[str, Any] | None = None, help_text: str = "", can_edit: bool = False
) -> TypedDecision | None:
    """Shows the whole call and asks. Returns None if the user leaves it pending. `updated_input` replaces the input of
    the call. `help_text` replaces the explanation of the keys, and the offer to allow such calls for the session.
    """
    edited: dict[str, Any] | None = None
    while True:
        discard_typed_input()
        if not await print_pages(render_call(approval, edited or updated_input)):
            return None
        rule = None if help_text else suggest_rule(approval)
        keys = {"y": "allows it", "n": "denies it"}
        keys |= {"s": "allows it for this session"} if rule is not None else {}
        keys |= {"e": "edits the input"} if can_edit else {}
        explained = f"{', '.join(f'{key} {effect}' for key, effect in keys.items())}."
        terminal_io.err().print(f"[dim]{escape_shown(help_text or explained)}[/]")
        typed = await ask_line(f"Allow it? [{'/'.join(keys)}; any other input leaves it pending]")
        if typed in _YES:
            return TypedDecision("allow", edited)
        if typed in _NO:
            return TypedDecision("deny")
        if typed in _SESSION and not help_text:
            if rule is not None:
                typed_rule = await ask_line(f"Rule for this session [{rule}]", keeps_case=True)
                return TypedDecision("allow", edited, typed_rule or rule)
            terminal_io.print_error("A rule requires approval for each such call, so it cannot be allowed in advance.")
        elif typed in _EDIT and can_edit:
            try:
                edited = await input_editor.edit_input(edited or approval.input or {}, _read_line)
            except ValueError as error:
                terminal_io.print_error(f"{error}. The input is unchanged.")
        else:
            return None


def suggest_rule(approval: Approval) -> str | None:
    """Returns a rule that allows this call for the session: the exact command, or the tool. None if a rule or a hook
    requires the approval, because a rule of the session does not override it.
    """
    permission = approval.permission or {}
    if permission.get("rule") or permission.get("hook"):
        return None
    if approval.mcp_server_name:
        return f"mcp__{approval.mcp_server_name}__{approval.name}"
    command = (approval.input or {}).get("command")
    if approval.name == "bash" and isinstance(command, str) and "*" not in command and command.isprintable():
        return f"Bash({command})"
    return TOOL_NAMES.get(str(approval.name), str(approval.name))


async def ask_line(question: str, *, keeps_case: bool = False) -> str:
    screen = terminal_io.err()
    screen.print(f"{terminal_io.quote(question)} ", end="")
    screen.file.flush()
    typed = (await _read_line()).strip()
    return typed if keeps_case else typed.lower()


def render_call(approval: Approval, updated_input: Mapping[str, Any] | None = None) -> list[Text]:
    """Returns all lines of a call: the agent, the tool, the full input and the reason for the question."""
    screen = terminal_io.err()
    shown = describe_call(approval.wire(), updated_input)
    prefix = f"Subagent {shown.agent_name} asks: " if shown.agent_name else ""
    first, *more = lay_out_text(f"{prefix}{shown.name}", screen.width)
    lines = [Text(first, style="yellow"), *(Text(line, style="yellow") for line in more)]
    lines += [Text(line) for line in lay_out_call(shown, screen.width)]
    lines += [Text(line, style="dim") for line in lay_out_text(shown.reason or "", screen.width) if line]
    if approval.display is not None and not approval.display.whole:
        lines.append(
            Text(
                "The server did not send the full input. Do not allow a call that you cannot see in full.",
                style="bold red",
            )
        )
    return lines


async def print_pages(lines: Sequence[Text]) -> bool:
    """Prints lines, on a terminal one page at a time. Returns False if the user stops before the end."""
    screen = terminal_io.err()
    size = max(_MIN_PAGE_LINES, screen.height - 3) if screen.is_terminal else len(lines)
    for start in range(0, len(lines), size or 1):
        for line in lines[start : start + size]:
            terminal_io.print_exactly(screen, line)
        if rest := max(0, len(lines) - start - size):
            screen.print(f"[dim]{rest:,} more lines. Press Enter to show them, q to skip:[/] ", end="")
            screen.file.flush()
            typed = await _read_line()
            if not typed or typed.strip().lower() in _STOP:
                return False
    return True


def _mark_ready(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


async def _read_line() -> str:
    """Reads a line without a thread, which would keep reading after Ctrl-C."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), _mark_ready, ready)
    try:
        await ready
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()
