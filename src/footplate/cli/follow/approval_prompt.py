"""Asks the user at the terminal to approve pending tool calls, while `footplate run` or `footplate attach` follows the
turn.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from rich.text import Text

from footplate.cli.json_output_models import RunResult
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import escape_shown
from footplate.cli.render.tool_call_format import lay_out_call, lay_out_text
from footplate.client import Approval, AsyncFootplate
from footplate.domain.text.approval_display import describe_call

_YES: Final = frozenset({"y", "yes"})
_NO: Final = frozenset({"n", "no"})
_STOP: Final = frozenset({"q", "quit"})
_MIN_PAGE_LINES: Final = 10
_QUESTION: Final = "Allow it? [y/n; any other input leaves it pending]"


class ApprovalPrompt(Protocol):
    async def __call__(self, client: AsyncFootplate, result: RunResult) -> str | None:
        """Returns the id of the last decision event, or None if the user does not decide here."""


async def ask_about_pending(client: AsyncFootplate, result: RunResult) -> str | None:
    """Asks about each pending call, then sends all decisions together, so that the turn resumes only once.

    If the user decides neither yes nor no for one of them, all calls stay pending.
    """
    listed = [one.id async for one in client.approvals.list(limit=100, session_id=result.session_id)]
    if {*listed} != {*result.pending}:
        return None  # it also waits for a custom tool's result, which cannot be typed
    approvals = [await client.approvals.retrieve(event_id) for event_id in listed]  # a list truncates large inputs
    decisions = [await ask_decision(one) for one in approvals]
    if None in decisions:
        return None
    sent = await client.events.send(
        result.session_id,
        [
            {"type": "user.tool_confirmation", "tool_use_id": one.id, "result": decision}
            for one, decision in zip(approvals, decisions, strict=True)
        ],
    )
    return sent[-1].id


def can_ask() -> bool:
    """Whether the user can be asked. Not on Windows, where asyncio cannot wait for terminal input."""
    return sys.platform != "win32" and sys.stdin.isatty() and sys.stderr.isatty()


def discard_typed_input() -> None:
    """Discards input that was typed before the question was shown."""
    import termios  # not available on Windows, where the user is not asked

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def ask_decision(
    approval: Approval, *, updated_input: Mapping[str, Any] | None = None, question: str = _QUESTION
) -> str | None:
    """Shows the whole call and asks. Returns `allow`, `deny` or None. `updated_input` replaces
    the input of the call.
    """
    discard_typed_input()
    if not await _print_pages(render_call(approval, updated_input)):
        return None
    screen = terminal_io.err()
    screen.print(f"{escape_shown(question)} ", end="")
    screen.file.flush()
    typed = (await _read_line()).strip().lower()
    if typed in _YES:
        return "allow"
    return "deny" if typed in _NO else None


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


async def _print_pages(lines: Sequence[Text]) -> bool:
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
