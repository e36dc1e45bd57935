"""A toolset whose tools write each call to a file, so that calls can be counted. It imports only `footplate.tools`."""

import asyncio
import os
import time
from typing import Annotated

from pydantic import Field

from footplate.tools import ToolContext, ToolError, Toolset

toolset = Toolset()


@toolset.tool
async def note(line: str, call: ToolContext, seconds: Annotated[float, Field(ge=0)] = 0.0) -> str:
    """Write a line to the ledger, and take some time for it."""
    _write(call)
    await asyncio.sleep(seconds)
    return f"Noted: {line}"


@toolset.tool(name="slow_note")
def note_in_a_thread(line: str, call: ToolContext, seconds: float = 0.0) -> str:
    """Write a line to the ledger, and block for some time."""
    _write(call)
    time.sleep(seconds)
    return f"Noted: {line}"


@toolset.tool
def describe_call(call: ToolContext) -> dict[str, object]:
    """Return what the tool knows about its call."""
    return {
        "session_id": call.session_id,
        "call_id": call.call_id,
        "principal": call.principal.id if call.principal else None,
        "context": call.context,
        "settings": call.settings,
    }


@toolset.tool
def refuse() -> str:
    """Fail in every call."""
    raise ToolError("The ledger is closed.")


def _write(call: ToolContext) -> None:
    ledger = os.open(str(call.settings["ledger"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(ledger, f"{call.call_id}\n".encode())
    finally:
        os.close(ledger)
