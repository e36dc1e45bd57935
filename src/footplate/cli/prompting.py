"""Whoever sits at the terminal is asked about calls that wait for a person's word, while `run` or `attach` watches."""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from rich.markup import escape

from footplate.cli import output, wording
from footplate.cli.answers import RunResult
from footplate.client import Approval, AsyncFootplate

_YES: Final = frozenset({"y", "yes"})
_NO: Final = frozenset({"n", "no"})
_MOST_SHOWN: Final = 4000


class Asks(Protocol):
    async def __call__(self, client: AsyncFootplate, result: RunResult) -> str | None:
        """The id of the last answer; None: nobody answers here."""


async def ask(client: AsyncFootplate, result: RunResult) -> str | None:
    """About each call in turn; all answers are sent at once, so that the turn goes on once. Who says neither yes nor no
    leaves them all for later.
    """
    waiting = [one async for one in client.approvals.list(limit=100, session_id=result.session_id)]
    if {one.id for one in waiting} != {*result.pending}:
        return None  # it waits for a custom tool's result too, which nobody types
    words = [await word(one) for one in waiting]
    if None in words:
        return None
    sent = await client.events.send(
        result.session_id,
        [
            {"type": "user.tool_confirmation", "tool_use_id": one.id, "result": word}
            for one, word in zip(waiting, words, strict=True)
        ],
    )
    return sent[-1].id


def can_ask() -> bool:
    """Not on Windows, where no terminal can be waited for beside other things."""
    return sys.platform != "win32" and sys.stdin.isatty() and sys.stderr.isatty()


def forget_typed() -> None:
    """What was typed by now was meant for something else: nobody had seen the question."""
    import termios  # not there on Windows, where nobody is asked

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def word(approval: Approval) -> str | None:
    """`allow` or `deny`; None: neither."""
    forget_typed()
    reason = (approval.permission or {}).get("reason")
    screen = output.err()
    screen.print(f"{_asker(approval)}[yellow]{escape(wording.one_line(str(approval.name)))}[/]")
    for line in _shown(approval.input or {}):
        screen.print(f"  {escape(line)}")
    if reason:
        screen.print(f"[dim]{escape(wording.one_line(str(reason)))}[/]")
    screen.print("Allow it? \\[y/n, anything else leaves it for later] ", end="")
    screen.file.flush()
    typed = (await _line()).strip().lower()
    if typed in _YES:
        return "allow"
    return "deny" if typed in _NO else None


def _asker(approval: Approval) -> str:
    name = approval.agent_name
    return f"The subagent {escape(wording.one_line(name))} asks: " if name else ""


def _shown(given: Mapping[str, Any]) -> Iterator[str]:
    """All that the call would be made with: who allows it has to see it."""
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        left = len(text) - _MOST_SHOWN
        lines = wording.safe(text[:_MOST_SHOWN]).splitlines() or [""]
        yield f"{wording.one_line(name)}: {lines[0]}"
        yield from (f"  {line}" for line in lines[1:])
        if left > 0:
            yield f"  … and {left} characters more, which `footplate approvals --json` has"


def _done(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


async def _line() -> str:
    """Without a thread that would go on reading after Ctrl-C."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), _done, ready)
    try:
        await ready
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()
