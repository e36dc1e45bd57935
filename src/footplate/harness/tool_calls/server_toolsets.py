"""Finds the toolsets of installed packages, and calls their functions for an agent.

A function runs outside the worker's event loop, so one that blocks does not stop other turns: async functions share an
event loop in a thread of their own, and every other call has its own thread. A function is called once. If it does not
return in time, the result says that the outcome is unknown.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

import structlog
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from footplate import failpoints
from footplate.domain.json import JsonObject
from footplate.harness import lazy_import
from footplate.harness.tool_calls.session_tools import validation_message
from footplate.tools import ENTRY_POINT_GROUP, Tool, ToolContext, ToolError, Toolset

log = structlog.get_logger(__name__)

_TIMED_OUT: Final = (
    "The outcome of this call is unknown: the tool did not return within {seconds:g} s. It may or may not have taken "
    "effect. Check before you repeat it."
)


class ToolsetUnusable(Exception):
    """The toolset is not installed on this worker, or its package cannot be imported."""


@dataclass(frozen=True, slots=True)
class ServerToolResult:
    text: str
    is_error: bool = False


def installed_toolsets() -> frozenset[str]:
    """The names of the toolsets of installed packages. Does not import the packages."""
    return frozenset(point.name for point in entry_points(group=ENTRY_POINT_GROUP))


async def load_toolset(name: str) -> Toolset:
    """Imports the package of a toolset when it is first used. Raises `ToolsetUnusable`."""
    return await asyncio.to_thread(_load_toolset, name)


@cache
def _load_toolset(name: str) -> Toolset:
    for point in entry_points(group=ENTRY_POINT_GROUP, name=name):
        with lazy_import.IMPORT_LOCK:
            try:
                loaded = point.load()
            except Exception as error:
                log.warning(
                    "toolset cannot be loaded",
                    action="tools.not_loaded",
                    toolset=name,
                    value=point.value,
                    exc_info=True,
                )
                raise ToolsetUnusable(
                    f"its package cannot be imported on this worker ({point.value}: {type(error).__name__}). "
                    "Check the worker's log."
                ) from error
        if not isinstance(loaded, Toolset):
            raise ToolsetUnusable(f"{point.value} is not a footplate.tools.Toolset.")
        log.info("toolset loaded", action="tools.loaded", toolset=name, value=point.value)
        return loaded
    raise ToolsetUnusable(
        "the package that offers it is not installed on this worker. Install the package with the entry point "
        f"{name!r} in the group {ENTRY_POINT_GROUP!r} on every worker."
    )


async def call_tool(tool: Tool, arguments: JsonObject, context: ToolContext) -> ServerToolResult:
    """Calls a function once. Errors of the model or the function are returned as error results, never raised."""
    try:
        bound = tool.bind_arguments(arguments, context)
    except ValidationError as error:
        return ServerToolResult(validation_message(tool.name, error), is_error=True)
    running = asyncio.wrap_future(_start(tool, bound))
    try:
        await failpoints.hit("in_tool")
        await asyncio.wait({running}, timeout=tool.timeout_seconds)
        if not running.done():
            return ServerToolResult(_TIMED_OUT.format(seconds=tool.timeout_seconds), is_error=True)
        if running.cancelled():
            return ServerToolResult(f"{tool.name} was cancelled.", is_error=True)
        return ServerToolResult(running.result())
    except ToolError as error:
        return ServerToolResult(str(error) or f"{tool.name} failed.", is_error=True)
    except Exception as error:
        log.warning("server-side tool failed", action="tools.failed", tool=tool.name, exc_info=True)
        # Not the message of the error: it may contain a secret of the worker.
        message = f"{tool.name} failed with {type(error).__name__}. The worker's log has the details."
        return ServerToolResult(message, is_error=True)
    finally:
        context.cancelled.set()
        running.cancel()


def _start(tool: Tool, bound: dict[str, Any]) -> "Future[str]":
    if tool.is_async:
        return asyncio.run_coroutine_threadsafe(_run_async(tool.function, bound), _tool_loop())
    future: Future[str] = Future()

    def run() -> None:
        try:
            future.set_result(_render_result(tool.function(**bound)))
        except BaseException as error:  # noqa: BLE001 - also an exit: it must not end the worker
            # asyncio cannot pass on a StopIteration: the call would wait for its timeout.
            can_be_raised = isinstance(error, Exception) and not isinstance(error, StopIteration)
            future.set_exception(error if can_be_raised else RuntimeError(repr(error)))

    future.set_running_or_notify_cancel()
    # A daemon, so that a function that never returns does not keep a stopping worker alive.
    threading.Thread(target=run, name=f"tool-{tool.name}", daemon=True).start()
    return future


async def _run_async(function: Callable[..., Awaitable[Any]], bound: dict[str, Any]) -> str:
    try:
        return _render_result(await function(**bound))
    except (SystemExit, KeyboardInterrupt) as error:  # would end the event loop of all tools
        raise RuntimeError(repr(error)) from error


@cache
def _tool_loop() -> asyncio.AbstractEventLoop:
    """The event loop of all async tools of this process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="server-tools", daemon=True).start()
    return loop


def _render_result(result: object) -> str:
    if isinstance(result, str):
        return result
    if result is None:
        return "(no content)"
    try:
        return to_json(result).decode()
    except PydanticSerializationError as error:
        raise ToolError(f"The tool returned a {type(result).__name__}, which cannot be converted to JSON.") from error
