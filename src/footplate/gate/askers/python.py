"""Runs a Python hook in its own process, so a hook that hangs, uses too much memory or crashes does not affect other
turns.

The operator installs the hook and it is trusted like the worker. It still receives only a few of the worker's
environment variables, such as `PATH`, and brings its own configuration. Input and output are files, not pipes, because
a background process of the hook could hold a pipe open, and the worker would wait for it.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import IO, Final

from footplate.domain.hooks import HookAccess
from footplate.domain.json import JsonObject, clean_text
from footplate.gate.hooks import GROUP, Hook
from footplate.gate.words import LONGEST_ANSWER, TOO_MUCH, Word, read_json

_MAIN: Final = "footplate.gate.askers.child_main"
_HANDED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "TZ")
_MOST_SAID: Final = 2000
_LOOKS_EVERY: Final = 0.05


def installed() -> list[str]:
    return sorted({found.name for found in entry_points(group=GROUP)})


async def ask(hook: Hook, told: JsonObject, access: HookAccess) -> Word:
    given = {"name": hook.target, "told": told, "options": hook.options}
    limits = {"memory": access.memory, "seconds": int(hook.timeout_seconds) + 1}
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as said:
        asked.write(json.dumps(given).encode())
        asked.seek(0)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", _MAIN, json.dumps(limits)),
            cwd="/",
            env={name: os.environ[name] for name in _HANDED_ON if name in os.environ},
            stdin=asked,
            stdout=answer,
            stderr=said,
            start_new_session=True,
        )
        try:
            failure = await _ended(process, hook.timeout_seconds, (answer, said))
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            code = await process.wait()
        if failure is not None:
            return Word(failure=failure)
        if code < 0:
            return Word(failure=f"The hook was terminated by {signal.Signals(-code).name} before it responded.")
        if code != 0:
            last_words = clean_text(_read(said).decode(errors="replace").strip()[-_MOST_SAID:])
            return Word(failure=f"The hook failed. {last_words}".strip())
        return read_json(_read(answer))


async def _ended(process: asyncio.subprocess.Process, seconds: float, outputs: Sequence[IO[bytes]]) -> str | None:
    """Wait until the process exits. Returns why the worker stopped waiting, or None if the process exited by itself."""
    ending = asyncio.ensure_future(process.wait())
    deadline = time.monotonic() + seconds
    try:
        while not ending.done():
            left = deadline - time.monotonic()
            if left <= 0:
                return f"The hook did not respond within {seconds:g} s."
            await asyncio.wait({ending}, timeout=min(left, _LOOKS_EVERY))
            if any(os.fstat(output.fileno()).st_size > LONGEST_ANSWER for output in outputs):
                return TOO_MUCH
    finally:
        ending.cancel()
    return None


def _read(output: IO[bytes]) -> bytes:
    output.seek(0)
    return output.read(LONGEST_ANSWER + 1)
