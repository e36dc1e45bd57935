"""A Python entry point, in a process of its own: one that hangs, eats memory or dies harms nobody else's turn.

The operator installed it, and it is trusted as the worker is. It gets none of the worker's variables all the same: what
it needs comes from its own configuration.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from importlib.metadata import entry_points
from typing import Final

from footplate.domain.hooks import HookAccess
from footplate.domain.json import JsonObject
from footplate.gate.hooks import GROUP, Hook
from footplate.gate.words import LONGEST_ANSWER, TOO_MUCH, Word, read_json

_MAIN: Final = "footplate.gate.askers.child_main"
_HANDED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "TZ")
_MOST_SAID: Final = 2000


class _TooMuch(Exception):
    pass


def installed() -> list[str]:
    return sorted({found.name for found in entry_points(group=GROUP)})


async def ask(hook: Hook, told: JsonObject, access: HookAccess) -> Word:
    given = {"name": hook.what, "told": told, "options": hook.options}
    limits = {"memory": access.memory, "seconds": int(hook.seconds) + 1}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _MAIN, json.dumps(limits)),
        cwd="/",
        env={name: os.environ[name] for name in _HANDED_ON if name in os.environ},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(hook.seconds):
            answer, said = await _spoken(process, json.dumps(given).encode())
            code = await process.wait()
    except TimeoutError:
        return Word(failure=f"It did not answer within {hook.seconds:g} s.")
    except _TooMuch:
        return Word(failure=TOO_MUCH)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if code < 0:
        return Word(failure=f"It was ended by {signal.Signals(-code).name} before it answered.")
    if code != 0:
        return Word(failure=f"It failed. {said.decode(errors='replace').strip()[-_MOST_SAID:]}".strip())
    return read_json(answer)


async def _spoken(process: asyncio.subprocess.Process, given: bytes) -> tuple[bytes, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    reading = asyncio.gather(_bounded(process.stdout), _bounded(process.stderr))
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(given)
            await process.stdin.drain()
        process.stdin.close()
        answer, said = await reading
    finally:
        reading.cancel()
    return answer, said


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    data = bytearray()
    while piece := await stream.read(1 << 16):
        data += piece
        if len(data) > LONGEST_ANSWER:
            raise _TooMuch
    return bytes(data)
