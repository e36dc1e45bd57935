"""Runs a Python hook in its own process, so that a hook that hangs, crashes or uses too much memory does not affect
other turns.

The operator installs the hook, so it is trusted like the worker. It still receives only a few of the worker's
environment variables, such as `PATH`. Input and output are files, because a background process of the hook could hold a
pipe open and block the worker.
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

from footplate.domain.json import JsonObject, clean_text
from footplate.domain.policy.hooks import HookAccess
from footplate.gate.hooks.hook_config import ENTRY_POINT_GROUP, Hook
from footplate.gate.hooks.hook_output import MAX_OUTPUT_BYTES, OUTPUT_TOO_LARGE, HookOutput, parse_json_output

_MAIN: Final = "footplate.gate.hooks.transports.python_hook_process"
_PASSED_VARIABLES: Final = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "TZ")
_MAX_MESSAGE_CHARACTERS: Final = 2000
_POLL_SECONDS: Final = 0.05


def list_installed_hooks() -> list[str]:
    return sorted({found.name for found in entry_points(group=ENTRY_POINT_GROUP)})


async def run_python_hook(hook: Hook, payload: JsonObject, access: HookAccess) -> HookOutput:
    request = {"name": hook.target, "told": payload, "options": hook.options}
    limits = {"memory": access.memory, "seconds": int(hook.timeout_seconds) + 1}
    with (
        tempfile.TemporaryFile() as input_file,
        tempfile.TemporaryFile() as output_file,
        tempfile.TemporaryFile() as error_file,
    ):
        input_file.write(json.dumps(request).encode())
        input_file.seek(0)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", _MAIN, json.dumps(limits)),
            cwd="/",
            env={name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ},
            stdin=input_file,
            stdout=output_file,
            stderr=error_file,
            start_new_session=True,
        )
        try:
            failure = await _wait_for_exit(process, hook.timeout_seconds, (output_file, error_file))
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            code = await process.wait()
        if failure is not None:
            return HookOutput(failure=failure)
        if code < 0:
            return HookOutput(failure=f"The hook was terminated by {signal.Signals(-code).name} before it responded.")
        if code != 0:
            message = clean_text(_read_output(error_file).decode(errors="replace").strip()[-_MAX_MESSAGE_CHARACTERS:])
            return HookOutput(failure=f"The hook failed. {message}".strip())
        return parse_json_output(_read_output(output_file))


async def _wait_for_exit(
    process: asyncio.subprocess.Process, seconds: float, outputs: Sequence[IO[bytes]]
) -> str | None:
    """Wait until the process exits. Returns why the worker stopped waiting, or None if the process exited by itself."""
    exit_waiter = asyncio.ensure_future(process.wait())
    deadline = time.monotonic() + seconds
    try:
        while not exit_waiter.done():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return f"The hook did not respond within {seconds:g} s."
            await asyncio.wait({exit_waiter}, timeout=min(remaining, _POLL_SECONDS))
            if any(os.fstat(output.fileno()).st_size > MAX_OUTPUT_BYTES for output in outputs):
                return OUTPUT_TOO_LARGE
    finally:
        exit_waiter.cancel()
    return None


def _read_output(output: IO[bytes]) -> bytes:
    output.seek(0)
    return output.read(MAX_OUTPUT_BYTES + 1)
