"""Converts HTML to Markdown in a separate process.

A page may be hostile, and the library holds the interpreter lock while it runs. In the worker process, one large page
would block every other turn. The separate process has a time limit and is killed if the user interrupts the turn.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Final

from footplate.harness.native.tool_failure_error import ToolFailure

_PROGRAM: Final = str(Path(__file__).with_name("html_conversion_main.py"))
_MAX_SECONDS: Final = 20.0


async def to_markdown(html: str, base_url: str) -> tuple[str, str]:
    """Returns the title and the text. Links are made absolute, so that a model can follow them."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", _PROGRAM, base_url),
        env={},
        stdin=pipe,
        stdout=pipe,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_MAX_SECONDS):
            out, _ = await process.communicate(html.encode("utf-8", "replace"))
    except TimeoutError:
        raise ToolFailure(f"{base_url} could not be converted to Markdown within {_MAX_SECONDS:g} s.") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
    if process.returncode != 0:
        raise ToolFailure(f"The HTML of {base_url} could not be converted to Markdown.")
    converted: dict[str, str] = json.loads(out)
    return converted["title"], converted["text"]
