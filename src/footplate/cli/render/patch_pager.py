"""Shows a patch on a terminal as git does: in colour, and in the user's pager."""

import io
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final

from rich.segment import Segments
from rich.syntax import Syntax

from footplate.cli.render import terminal_io
from footplate.domain.text.visible_text import show_prose

_LINES_AT_ONCE: Final = 500
_FILE_HEADER: Final = "diff --git "
_PAGER_DEFAULTS: Final = {"LESS": "FRX", "LV": "-c"}
"""As git sets them: colours are shown, and a text that fits on the screen is printed without waiting."""


def show_patch(patch: bytes, *, uses_pager: bool) -> None:
    """Prints a patch to the terminal. Control characters in it are escaped, and binary changes are only named."""
    lines = [*_replace_binary(patch.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n"))]
    syntax, console = Syntax("", "diff", theme="ansi_dark", tab_size=0), terminal_io.out()
    with _open_output(_find_pager() if uses_pager else None) as output:
        for start in range(0, len(lines), _LINES_AT_ONCE):
            shown = "\n".join(map(show_prose, lines[start : start + _LINES_AT_ONCE]))
            highlighted = syntax.highlight(shown.encode("utf-8", "replace").decode())
            with console.capture() as captured:
                # As segments: a text would be printed with spaces instead of tabs.
                terminal_io.print_exactly(console, Segments(highlighted.render(console)))
            output.write(captured.get())


def _replace_binary(lines: Iterable[str]) -> Iterator[str]:
    """Yields a patch with one line instead of the encoded content of each binary file."""
    header, in_binary = "", False
    for line in lines:
        if line.startswith(_FILE_HEADER):
            header = line
        if line == "GIT binary patch":
            in_binary = True
            yield _describe_binary(header.removeprefix(_FILE_HEADER))
        elif in_binary and line.startswith((_FILE_HEADER, "# ")):  # no line of encoded content has a space there
            in_binary = False
        if not in_binary:
            yield line


def _describe_binary(names: str) -> str:
    """`names`: `a/PATH b/PATH`. A renamed file has two paths, and git quotes unusual ones."""
    path = names[2 : 2 + (len(names) - len("a/ b/")) // 2]
    return f"Binary file {path} differs" if names == f"a/{path} b/{path}" else f"Binary files {names} differ"


def _find_pager() -> str | None:
    pager = os.environ.get("PAGER", "less" if shutil.which("less") else "")
    return None if pager in {"", "cat"} or os.environ.get("TERM") == "dumb" else pager


@contextmanager
def _open_output(pager: str | None) -> Iterator[IO[str]]:
    if pager is None:
        yield terminal_io.out().file
        return
    environment = {**_PAGER_DEFAULTS, **os.environ}
    process = subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, env=environment)  # noqa: S602 - as git does
    previous_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the pager
    try:
        assert process.stdin is not None
        with suppress(BrokenPipeError), io.TextIOWrapper(process.stdin, "utf-8") as stream:
            yield stream
    finally:
        process.wait()
        signal.signal(signal.SIGINT, previous_handler)
