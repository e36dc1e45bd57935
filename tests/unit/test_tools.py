"""The public interface for server-side tools: schemas from signatures, validated inputs, and calls of functions."""

import asyncio
import threading
import time
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from footplate.domain.json import JsonObject
from footplate.harness.tool_calls import server_toolsets
from footplate.harness.tool_calls.server_toolsets import ToolsetUnusable, call_tool
from footplate.tools import ENTRY_POINT_GROUP, ToolContext, ToolError, Toolset

pytestmark = pytest.mark.timing

CONTEXT = ToolContext(organisation="org_1", session_id="sesn_1", turn_id="turn_1", call_id="sevt_1")


class Item(BaseModel):
    name: str
    count: int = 1


def one_tool(function: Callable[..., Any], **options: Any) -> Toolset:
    toolset = Toolset()
    toolset.tool(**options)(function)
    return toolset


async def run(function: Callable[..., Any], arguments: JsonObject | None = None, **options: Any) -> tuple[str, bool]:
    (tool,) = one_tool(function, **options).tools.values()
    context = ToolContext(organisation="org_1", session_id="sesn_1", turn_id="turn_1", call_id="sevt_1")
    result = await call_tool(tool, arguments or {}, context)
    return result.text, result.is_error


def order(item: Item, call: ToolContext, note: Annotated[str, Field(description="For the shop.")] = "") -> str:
    """Order an item."""
    return f"{call.call_id}: {item.count} {item.name} {note}"


@pytest.mark.requirement("R1")
async def test_the_input_is_described_and_validated_by_the_signature() -> None:
    (tool,) = one_tool(order).tools.values()
    assert (tool.name, tool.description) == ("order", "Order an item.")
    schema = tool.input_schema
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["item"], False)
    assert {*schema["properties"]} == {"item", "note"}
    assert schema["properties"]["note"]["description"] == "For the shop."
    assert await run(order, {"item": {"name": "nut", "count": 3}}) == ("sevt_1: 3 nut ", False)
    text, is_error = await run(order, {"item": {"name": "nut", "count": "many"}, "more": 1})
    assert is_error
    assert text.startswith("The input of order is not valid. item.count: ")
    assert "more: " in text


def without_description() -> None: ...


def without_type(line) -> None:  # pyrefly: ignore[implicit-any-parameter]  # noqa: ANN001 - what is refused
    """Do it."""


def with_any_arguments(*lines: str) -> None:
    """Do it."""


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (without_description, {}, "no docstring"),
        (without_type, {}, "no type"),
        (with_any_arguments, {}, "parameters with names only"),
        (order, {"name": "a tool"}, "not valid"),
        (order, {"timeout_seconds": 0}, "greater than 0"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(
    function: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        one_tool(function, **options)


def test_a_decorated_function_stays_a_function_and_names_are_unique() -> None:
    toolset = Toolset()
    assert toolset.tool(order) is order
    with pytest.raises(ValueError, match="Two tools"):
        toolset.tool(order)
    toolset.tool(name="order_again")(order)
    assert [*toolset.tools] == ["order", "order_again"]


@pytest.mark.parametrize(
    ("value", "text"),
    [("plain", "plain"), (None, "(no content)"), ({"a": [1]}, '{"a":[1]}'), (Item(name="x"), '{"name":"x","count":1}')],
)
async def test_results_are_text_or_json(value: object, text: str) -> None:
    def give() -> object:
        """Give it."""
        return value

    assert await run(give) == (text, False)


async def test_a_result_that_is_no_json_is_an_error() -> None:
    def give() -> object:
        """Give it."""
        return object()

    assert await run(give) == ("The tool returned a object, which cannot be converted to JSON.", True)


async def test_errors_are_results_and_only_tool_errors_show_their_message() -> None:
    def refuse() -> None:
        """Refuse."""
        raise ToolError("The shop is closed.")

    async def leak() -> None:
        """Leak."""
        raise ValueError("password")

    async def exit_process() -> None:
        """Exit."""
        raise SystemExit(3)

    async def cancel() -> None:
        """Cancel."""
        raise asyncio.CancelledError

    def take_first() -> str:
        """Take the first of nothing."""
        return next(iter([]))

    assert await run(refuse) == ("The shop is closed.", True)
    assert await run(leak) == ("leak failed with ValueError. The worker's log has the details.", True)
    assert await run(exit_process) == ("exit_process failed with RuntimeError. The worker's log has the details.", True)
    assert await run(cancel) == ("cancel was cancelled.", True)
    assert await run(take_first) == ("take_first failed with RuntimeError. The worker's log has the details.", True)
    assert await run(refuse) == ("The shop is closed.", True)


async def test_functions_run_outside_the_event_loop_of_the_worker() -> None:
    async def block() -> str:
        """Block the event loop."""
        time.sleep(0.2)  # noqa: ASYNC251 - a mistake that must not stop other turns
        return threading.current_thread().name

    started = time.monotonic()
    call = asyncio.create_task(run(block))
    await asyncio.sleep(0.01)
    assert time.monotonic() - started < 0.15
    assert await call == ("server-tools", False)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_timeout_is_a_result_with_an_unknown_outcome(*, is_async: bool) -> None:
    seen: list[ToolContext] = []
    ended = threading.Event()

    async def wait(call: ToolContext) -> None:
        """Wait."""
        seen.append(call)
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    def block(call: ToolContext) -> None:
        """Block."""
        seen.append(call)
        call.cancelled.wait(60)
        ended.set()

    text, is_error = await run(wait if is_async else block, timeout_seconds=0.05)
    assert is_error
    assert text.startswith("The outcome of this call is unknown: the tool did not return within 0.05 s.")
    assert seen[0].cancelled.is_set()
    assert await asyncio.to_thread(ended.wait, 5)


async def test_an_interrupt_cancels_the_function() -> None:
    started, ended = threading.Event(), threading.Event()

    def block(call: ToolContext) -> None:
        """Block."""
        started.set()
        if call.cancelled.wait(60):
            ended.set()

    call = asyncio.create_task(run(block))
    await asyncio.to_thread(started.wait, 5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(ended.wait, 5)


async def test_a_toolset_that_cannot_be_used_reports_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "missing": EntryPoint("missing", "no_such_package:toolset", ENTRY_POINT_GROUP),
        "other": EntryPoint("other", "footplate.tools:ToolContext", ENTRY_POINT_GROUP),
    }

    def find(group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == "footplate.tools"
        return [point for key, point in points.items() if name in {None, key}]

    monkeypatch.setattr(server_toolsets, "entry_points", find)
    assert server_toolsets.installed_toolsets() == {"missing", "other"}
    for name, message in (
        ("missing", r"cannot be imported on this worker \(no_such_package:toolset: ModuleNotFoundError\)"),
        ("other", "footplate.tools:ToolContext is not a footplate.tools.Toolset"),
        ("absent", "not installed on this worker. Install the package with the entry point 'absent'"),
    ):
        with pytest.raises(ToolsetUnusable, match=message):
            await server_toolsets.load_toolset(name)
