"""Events of a session: sending, listing and streaming them."""

import asyncio
import operator
import tempfile
from pathlib import Path
from typing import Any

import anthropic
from anthropic import beta_async_tool
from bench.support.mcp_server.server_process import McpProcess
from bench.support.sdk.sdk_client import TOOLSET, SdkClient, event_types, message
from tests.compat import reference
from tests.compat.checks import read_pages, require_equal
from tests.compat.registry import CLAIMS, Verdict, different, refused, supported

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJSVFT0YK"
WEATHER: Any = {
    "type": "custom",
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


async def _send(door: SdkClient, session_id: str, *events: Any) -> Any:
    return await door.call("sessions.events.send", session_id, events=events)


async def _refuse(door: SdkClient, session_id: str, event: Any, field: str) -> None:
    refusal = anthropic.BadRequestError
    await door.expect_error(refusal, "sessions.events.send", session_id, events=[event], field=field)


@supported("sessions.events.send", note="The response has the events with their ids.")
@supported("sessions.events.send", "session_id", "events")
@supported("UserMessageEventParams", "content")
@supported("TextBlockParam", "text")
@supported("ImageBlockParam", "source")
@supported("Base64ImageSourceParam", "data", "media_type")
@supported("DocumentBlockParam", "source", "title", "context")
@supported("Base64DocumentSourceParam", "data", "media_type")
@supported("PlainTextDocumentSourceParam", "data", "media_type")
@supported("events", "user.message", note="Streamed twice with one id: queued (`processed_at` null), then processed.")
async def a_message_with_every_kind_of_block(door: SdkClient) -> None:
    session = await door.session()
    blocks: list[Any] = [
        {"type": "text", "text": "[[script:probe-hello]]"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "T"}, "title": "t"},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            "context": "c",
        },
    ]
    sent: list[Any] = []

    async def send() -> None:
        sent.extend((await _send(door, session.id, {"type": "user.message", "content": blocks})).data)

    received = await door.watch(session.id, send)
    queued, taken = [event for event in received if event.type == "user.message"]
    require_equal((queued.id, taken.id, queued.processed_at), (sent[0].id, sent[0].id, None))
    require_equal(taken.processed_at is not None, True)
    require_equal([block.type for block in taken.content], ["text", "image", "document", "document"])
    await _refuse(door, session.id, {"type": "user.message", "content": []}, "events.0.content")
    await _refuse(
        door, session.id, {"type": "user.message", "content": [{"type": "text", "text": ""}]}, "events.0.content"
    )
    await _refuse(door, session.id, {"type": "user.dance"}, "events.0.type")
    await door.expect_error(anthropic.BadRequestError, "sessions.events.send", session.id, events=[], field="events")
    await door.expect_error(anthropic.NotFoundError, "sessions.events.send", "sesn_none", events=[message("x")])


@refused("RedactedBlockParam")
@refused("SearchResultBlockParam")
@refused("SystemMessageEventParams")
@refused("UserDefineOutcomeEventParams")
@refused("UserToolResultEventParams", note="The server runs the built-in tools itself.")
async def unsupported_events_are_refused(door: SdkClient) -> None:
    session_id = (await door.session()).id
    where = "events.0.content.0"
    await _refuse(door, session_id, {"type": "user.message", "content": [{"type": "redacted"}]}, f"{where}.type")
    found = {"type": "search_result", "source": "s", "title": "t", "content": [], "citations": {"enabled": True}}
    result = {"type": "user.custom_tool_result", "custom_tool_use_id": "sevt_1", "content": [found]}
    await _refuse(door, session_id, result, f"{where}.type")
    for event in (
        {"type": "system.message", "content": [{"type": "text", "text": "x"}]},
        {"type": "user.define_outcome", "description": "d", "rubric": {"type": "text", "content": "c"}},
        {"type": "user.tool_result", "tool_use_id": "sevt_1"},
    ):
        await _refuse(door, session_id, event, "events.0.type")
    await _refuse(door, session_id, {"type": "user.interrupt", "session_thread_id": "t"}, "events.0.session_thread_id")


@supported(
    "sessions.events.stream", note="Starts with new events; `Last-Event-ID` or `?after=` continue after a frame."
)
@supported("sessions.events.stream", "session_id")
@supported("sessions.events.stream", "event_deltas", note="Only `agent.message` and `agent.thinking`.")
@supported("events", "agent.message", "agent.thinking", "agent.tool_use", "agent.tool_result")
@supported("events", "span.model_request_start", "span.model_request_end")
@supported("events", "session.status_running", "session.status_idle", "event_start", "event_delta")
async def a_turn_is_streamed_as_it_happens(door: SdkClient) -> None:
    session = await door.session()
    received = await door.run_turn(session.id, "probe-work", event_deltas=["agent.message", "agent.thinking"])
    require_equal(
        [event.type for event in received if not event.type.startswith(("event_", "user."))],
        [
            "session.status_running",
            "span.model_request_start",
            "agent.thinking",
            "agent.message",
            "span.model_request_end",
            "agent.tool_use",
            "agent.tool_result",
            "span.model_request_start",
            "agent.message",
            "span.model_request_end",
            "session.status_idle",
        ],
    )
    require_equal({"event_start", "event_delta"} <= set(event_types(received)), True)
    require_equal(received[-1].stop_reason.type, "end_turn")
    second = await door.run_turn(session.id, "probe-hello")
    require_equal([event.type for event in second if event.type.startswith("event_")], [])
    refusal = anthropic.BadRequestError
    deltas: Any = ["agent.tool_use"]
    await door.expect_error(
        refusal, "sessions.events.stream", session.id, event_deltas=deltas, field="event_deltas[].0"
    )
    await door.expect_error(anthropic.NotFoundError, "sessions.events.stream", "sesn_none")


@supported("events", "user.interrupt")
async def an_interrupt_ends_the_turn(door: SdkClient) -> None:
    session = await door.session()
    await door.run_turn(session.id, "probe-slow", until=lambda event: event.type == "span.model_request_start")
    stop: Any = {"type": "user.interrupt"}
    received = await door.watch(session.id, lambda: _send(door, session.id, stop))
    require_equal(received[-1].stop_reason.type, "end_turn")
    require_equal([event.type for event in received if event.type == "user.interrupt"], ["user.interrupt"] * 2)
    (idle,) = (await _send(door, session.id, stop)).data
    require_equal(idle.processed_at is not None, True)


@supported("UserCustomToolResultEventParams", "custom_tool_use_id", "content", "is_error")
@supported("events", "agent.custom_tool_use", "user.custom_tool_result")
async def a_custom_tool_waits_for_its_result(door: SdkClient) -> None:
    session = await door.session((await door.agent(tools=[TOOLSET, WEATHER])).id)
    parked = await door.run_turn(session.id, "probe-weather")
    (call,) = [event for event in parked if event.type == "agent.custom_tool_use"]
    require_equal((call.name, call.input), ("get_weather", {"city": "Oslo"}))
    require_equal((parked[-1].stop_reason.type, parked[-1].stop_reason.event_ids), ("requires_action", [call.id]))
    result = {"type": "user.custom_tool_result", "custom_tool_use_id": call.id, "is_error": False}
    content = {"content": [{"type": "text", "text": "snow"}]}
    resumed = await door.watch(session.id, lambda: _send(door, session.id, {**result, **content}))
    require_equal(
        [event.processed_at is not None for event in resumed if event.type == "user.custom_tool_result"], [True]
    )
    require_equal(resumed[-1].stop_reason.type, "end_turn")
    await _refuse(door, session.id, result, "events.0.custom_tool_use_id")


@supported("sessions.events.tool_runner", note="Runs custom tools. Built-in tools run on the server.")
@supported("sessions.events.tool_runner", "session_id", "tools", "max_idle")
@different("sessions.events.tool_runner", "environment_key", note="Any API key: environments have no keys.")
async def the_tool_runner_serves_a_session(door: SdkClient) -> None:
    cities: list[str] = []
    key = await door.cluster.create_key("default")

    async def get_weather(city: str) -> str:
        """The weather in a city."""
        cities.append(city)
        return "snow"

    session = await door.session((await door.agent(tools=[TOOLSET, WEATHER])).id)
    events = door.sdk.beta.sessions.events
    door.tally.calls["async sessions.events.tool_runner"] += 1
    await door.send_script(session.id, "probe-weather")
    runner = events.tool_runner(session.id, tools=[beta_async_tool(get_weather)], max_idle=0.5, environment_key=key)
    async with asyncio.timeout(60):
        calls = [call async for call in runner]
    require_equal([(call.name, call.posted, call.is_error) for call in calls], [("get_weather", True, False)])
    require_equal(cities, ["Oslo"])
    messages = [event async for event in events.list(session.id, types=["agent.message"])]
    require_equal([block.text for event in messages for block in event.content], ["Snow in Oslo."])  # pyrefly: ignore[missing-attribute]


@supported("events", "session.error", "session.status_rescheduled")
async def a_rate_limit_is_reported_and_retried(door: SdkClient) -> None:
    session = await door.session()
    received = await door.run_turn(session.id, "probe-limited")
    (error,) = [event for event in received if event.type == "session.error"]
    require_equal((error.error.type, error.error.retry_status.type), ("model_rate_limited_error", "retrying"))
    require_equal("session.status_rescheduled" in event_types(received), True)
    require_equal(received[-1].stop_reason.type, "end_turn")


@supported(
    "events",
    "session.status_terminated",
    note="When a session ends. Extra fields: `outcome`, `reason`, `ended_by`.",
)
async def the_end_of_a_session(door: SdkClient) -> None:
    session = await door.session()

    async def end() -> None:
        await door.sdk.post(f"/v1/sessions/{session.id}/end", body={"outcome": "failed"}, cast_to=dict[str, Any])

    received = await door.watch(session.id, end, until=lambda event: event.type == "session.status_terminated")
    require_equal([event.type for event in received], ["session.status_terminated"])
    require_equal((await door.call("sessions.retrieve", session.id)).status, "terminated")


@supported("events", "session.updated", "session.deleted")
async def the_last_event_of_a_session(door: SdkClient) -> None:
    session = await door.session()

    async def end() -> None:
        await door.call("sessions.update", session.id, title="last")
        await door.call("sessions.delete", session.id)

    received = await door.watch(session.id, end, until=lambda event: event.type == "session.deleted")
    require_equal(event_types(received), ["session.updated", "session.deleted"])


@supported("sessions.events.list", "session_id", "types", "page")
@supported("sessions.events.list", "limit", note="Default and maximum 1,000.")
@supported("sessions.events.list", "created_at_gt", "created_at_gte", "created_at_lt", "created_at_lte")
@supported("sessions.events.list", note="Each event is listed once.")
@different(
    "sessions.events.list", "order", note="In the order of the log: a queued input is listed where it was accepted."
)
async def events_are_listed_in_pages_in_both_orders(door: SdkClient) -> None:
    session = await door.session()
    await door.run_turn(session.id, "probe-work")
    await door.run_turn(session.id, "probe-hello")
    whole = await door.list_all("sessions.events.list", session.id)
    ids = [event.id for event in whole]
    require_equal((len(set(ids)), whole[0].type, whole[-1].type), (len(ids), "user.message", "session.status_idle"))
    for order, wanted in (("asc", ids), ("desc", ids[::-1])):
        listed = await door.list_all("sessions.events.list", session.id, order=order, limit=4)
        require_equal([event.id for event in listed], wanted)
        pages = await read_pages(door, "sessions.events.list", session.id, order=order, limit=5)
        require_equal([event.id for page in pages for event in page], wanted)
        first = await door.call("sessions.events.list", session.id, order=order, limit=4)
        turned = {"order": "desc" if order == "asc" else "asc", "page": first.next_page}
        await door.expect_error(anthropic.BadRequestError, "sessions.events.list", session.id, field="page", **turned)
    kinds = ["agent.message", "agent.tool_use"]
    listed = await door.list_all("sessions.events.list", session.id, types=kinds)
    require_equal(event_types(listed), ["agent.message", "agent.tool_use", "agent.message", "agent.message"])
    moment = whole[4].processed_at
    for bound, holds in (("gt", operator.gt), ("gte", operator.ge), ("lt", operator.lt), ("lte", operator.le)):
        found = await door.list_all("sessions.events.list", session.id, **{f"created_at_{bound}": moment})
        require_equal([event.id for event in found], [event.id for event in whole if holds(event.processed_at, moment)])
    refusal = anthropic.BadRequestError
    for fields, field in (
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"page": "nonsense"}, "page"),
        ({"types": ["agent.dance"]}, "types[].0"),
        ({"order": "sideways"}, "order"),
    ):
        await door.expect_error(refusal, "sessions.events.list", session.id, field=field, **fields)
    await door.expect_error(anthropic.NotFoundError, "sessions.events.list", "sesn_none")


@supported("UserToolConfirmationEventParams", "tool_use_id", "result", "deny_message")
@supported("events", "user.tool_confirmation")
async def a_call_waits_for_approval(door: SdkClient) -> None:
    asking: Any = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
    session = await door.session((await door.agent(tools=[asking])).id)
    received = await door.run_turn(session.id, "probe-work")
    (use,) = [event for event in received if event.type == "agent.tool_use"]
    require_equal((use.evaluated_permission, received[-1].stop_reason.type), ("ask", "requires_action"))
    require_equal(received[-1].stop_reason.event_ids, [use.id])
    yes = {"type": "user.tool_confirmation", "tool_use_id": use.id, "result": "allow"}
    no = {**yes, "result": "deny", "deny_message": "Not today."}
    await _refuse(door, session.id, {**yes, "deny_message": "x"}, "events.0")
    await _refuse(door, session.id, {**yes, "tool_use_id": "sevt_1"}, "events.0.tool_use_id")
    sent: list[Any] = []

    async def allow() -> None:
        sent.extend((await _send(door, session.id, yes)).data)

    received = await door.watch(session.id, allow)
    (result,) = [event for event in received if event.type == "agent.tool_result"]
    require_equal((result.tool_use_id, result.content[0].text.strip()), (use.id, "hello"))
    require_equal([event.id for event in (await _send(door, session.id, yes)).data], [sent[0].id])
    await door.expect_error(anthropic.ConflictError, "sessions.events.send", session.id, events=[no])


@supported("events", "agent.mcp_tool_use", "agent.mcp_tool_result")
async def a_tool_of_an_mcp_server_in_a_turn(door: SdkClient) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with McpProcess(Path(directory, "notes")) as notes:
            session = await door.session((await door.agent(**notes.agent_fields)).id)
            received = await door.run_turn(session.id, "probe-note")
            require_equal(notes.read_notes(), ["one"])
    (use,) = [event for event in received if event.type == "agent.mcp_tool_use"]
    (result,) = [event for event in received if event.type == "agent.mcp_tool_result"]
    require_equal((use.mcp_server_name, use.name, use.input), ("notes", "note", {"line": "one"}))
    require_equal((result.mcp_tool_use_id, result.is_error, result.content[0].text), (use.id, False, "Noted: one"))
    require_equal((use.evaluated_permission, event_types(received).count("agent.tool_use")), ("allow", 0))


@different("events", "agent.thread_context_compacted", note="Only with Claude Code, when it compacts the conversation.")
@different("events", "session.usage", note="Never sent.")
@different("events", "session.thread_status_rescheduled", note="Never sent: a subagent is not retried on its own.")
@different("events", "session.thread_status_terminated", note="Never sent: a completed thread is idle.")
@different("events", "span.outcome_evaluation_start", note="Never sent: no outcomes.")
@different("events", "span.outcome_evaluation_ongoing", note="Never sent: no outcomes.")
@different("events", "span.outcome_evaluation_end", "user.define_outcome", note="Never sent: no outcomes.")
@different("events", "system.message", "user.tool_result", note="Never sent: refused as an input.")
@different("events", "workflow_run.created", "workflow_run.error", note="Never sent: no workflow runs.")
@different("events", "workflow_run.phase_started", "workflow_run.phase_ended", note="Never sent: no workflow runs.")
@different("events", "workflow_run.status_running", note="Never sent: no workflow runs.")
@different("events", "workflow_run.status_idle", "workflow_run.status_ended", note="Never sent: no workflow runs.")
async def filters_accept_types_that_are_never_sent(door: SdkClient) -> None:
    session = await door.session((await door.agent(tools=[TOOLSET, WEATHER])).id)
    await door.run_turn(session.id, "probe-work")
    never = [name for name in reference.event_types() if _is_never_sent(name)]
    require_equal(await door.list_all("sessions.events.list", session.id, types=never), [])


def _is_never_sent(name: str) -> bool:
    claim = CLAIMS[reference.EVENTS, name]
    return claim.verdict is Verdict.DIFFERENT
