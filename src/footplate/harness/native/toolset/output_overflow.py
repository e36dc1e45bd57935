"""Uploads command output that is too large for the log to the object store, and records the name of the object."""

from dataclasses import replace

import structlog

from footplate.domain.errors import Unavailable
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import TurnLog
from footplate.harness.native.toolset.builtin_tools import ToolOutput

log = structlog.get_logger(__name__)


async def store_full_output(output: ToolOutput, turn: TurnLog) -> ToolOutput:
    """Uploads the full output. If the object store is down, the call still succeeds without it: the command has already
    run, and its result matters more than its full output.
    """
    if output.command is None or not output.full_output:
        return output
    command = dict(output.command)
    for name, full_output in output.full_output.items():
        stream = command[name]
        assert isinstance(stream, dict)
        try:
            location: JsonObject = {"object": await turn.store_output(full_output)}
        except Unavailable as error:
            log.warning("full output of a command could not be stored", action="output.lost", reason=error.message)
            location = {"object": None}
        command[name] = {**stream, **location}
    return replace(output, command=command, full_output={})
