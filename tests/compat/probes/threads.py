"""Threads of a session: the primary thread and the threads of subagents."""

from typing import Any

import anthropic
from bench.support.sdk.sdk_client import MODEL, TOOLSET, SdkClient, event_types
from tests.compat.checks import require_equal
from tests.compat.registry import different, probe, refused, supported

_CLAUDE: Any = {"harness": "claude"}
_NATIVE: Any = {"harness": "native"}
_SHELL: Any = {"harness": "shell"}
_MULTIAGENT = "With the harnesses `claude` and `native`."


@supported("sessions.threads.list", note="The primary thread first.")
@supported("sessions.threads.list", "session_id", "limit", "page", "statuses")
@supported("sessions.threads.retrieve")
@supported("sessions.threads.retrieve", "session_id", "thread_id")
@different("sessions.threads.archive", note="Refused with 400: a thread is archived with its session.")
@supported("sessions.threads.archive", "session_id", "thread_id")
async def the_primary_thread_is_the_session(door: SdkClient) -> None:
    session = await door.session()
    (thread,) = await door.list_all("sessions.threads.list", session.id, limit=1)
    require_equal((thread.type, thread.session_id, thread.parent_thread_id), ("session_thread", session.id, None))
    require_equal((thread.id.split("_")[0], thread.status, thread.archived_at), ("sthr", "idle", None))
    require_equal((thread.agent.id, thread.agent.version), (session.agent.id, session.agent.version))
    found = await door.call("sessions.threads.retrieve", thread.id, session_id=session.id)
    require_equal((found.id, found.created_at), (thread.id, session.created_at))
    require_equal(await door.list_all("sessions.threads.list", session.id, statuses=["running", "terminated"]), [])
    refusal = anthropic.BadRequestError
    await door.expect_error(refusal, "sessions.threads.list", session.id, page="x", field="page")
    await door.expect_error(refusal, "sessions.threads.archive", thread.id, session_id=session.id, field="thread_id")
    await door.expect_error(anthropic.NotFoundError, "sessions.threads.list", "sesn_none")
    for method in ("retrieve", "archive", "events.list", "events.stream"):
        await door.expect_error(
            anthropic.NotFoundError, f"sessions.threads.{method}", "sthr_none", session_id=session.id
        )


@supported("sessions.threads.events.list")
@supported("sessions.threads.events.list", "session_id", "thread_id", "limit", "page")
@supported("sessions.threads.events.stream")
@supported("sessions.threads.events.stream", "session_id", "thread_id", "event_deltas")
async def the_primary_threads_events_are_those_of_the_session(door: SdkClient) -> None:
    session = await door.session()
    (thread,) = await door.list_all("sessions.threads.list", session.id)
    received = await door.watch(
        thread.id,
        lambda: door.send_script(session.id, "probe-hello"),
        method="sessions.threads.events.stream",
        session_id=session.id,
        event_deltas=["agent.message"],
    )
    require_equal("event_delta" in event_types(received), True)
    listed = await door.list_all("sessions.threads.events.list", thread.id, session_id=session.id, limit=2)
    require_equal(
        [event.id for event in listed], [event.id for event in await door.list_all("sessions.events.list", session.id)]
    )


@supported("agents.create", "multiagent", note=_MULTIAGENT)
@supported("agents.update", "multiagent", note=_MULTIAGENT)
@supported("Agent", "multiagent")
@different(
    "MultiagentCoordinatorParams",
    "agents",
    note="Only agents by id. With `claude`, without MCP servers and custom tools.",
)
@refused("MultiagentSelfParams")
@refused("AdvisorParams")
@refused("Multiagent20261001Params")
async def an_agent_has_subagents(door: SdkClient) -> None:
    scout = (await door.agent(name="scout")).id
    asks = {"type": "coordinator", "agents": [scout]}
    lead = await door.agent(name="lead", multiagent=asks, extra_body=_CLAUDE)
    require_equal([(one.id, one.version) for one in lead.multiagent.agents], [(scout, 1)])
    cleared = await door.call("agents.update", lead.id, multiagent=None)
    require_equal(cleared.multiagent, None)
    again = await door.call("agents.update", lead.id, multiagent=asks)
    require_equal(again.multiagent.type, "coordinator")
    refusal = anthropic.BadRequestError
    for multiagent, field in (
        ({"type": "coordinator", "agents": [{"type": "self"}]}, "multiagent.agents.0"),
        ({"type": "coordinator", "agents": [{"type": "advisor", "model": MODEL}]}, "multiagent.agents.0"),
        ({"type": "multiagent_20261001"}, "multiagent"),
    ):
        await door.expect_error(refusal, "agents.update", lead.id, field=field, multiagent=multiagent)
    await door.expect_error(
        refusal, "agents.create", name="l", model=MODEL, multiagent=asks, field="multiagent", extra_body=_SHELL
    )


@supported("events", "session.thread_created", "session.thread_status_running", "session.thread_status_idle")
@supported("events", "agent.thread_message_sent", "agent.thread_message_received")
async def a_subagent_works_in_a_thread(door: SdkClient) -> None:
    await _delegate(door, _CLAUDE, "probe-ask")


@probe
async def a_subagent_of_native_works_in_a_thread(door: SdkClient) -> None:
    await _delegate(door, _NATIVE, "probe-ask-native")


async def _delegate(door: SdkClient, harness: Any, script: str) -> None:
    scout = (await door.agent(name="scout")).id
    asks = {"type": "coordinator", "agents": [{"type": "agent", "id": scout, "version": 1}]}
    lead = await door.agent(name="lead", tools=[TOOLSET], multiagent=asks, extra_body=harness)
    session = await door.session(lead.id)
    received = event_types(await door.run_turn(session.id, script))
    _, thread = await door.list_all("sessions.threads.list", session.id)
    primary = [event.type for event in await door.list_all("sessions.events.list", session.id)]
    inside = await door.list_all("sessions.threads.events.list", thread.id, session_id=session.id)
    require_equal((thread.agent.id, thread.status, thread.usage.output_tokens > 0), (scout, "idle", True))
    begun = ["session.thread_created", "session.thread_status_running", "agent.thread_message_sent"]
    done = ["agent.thread_message_received", "session.thread_status_idle", "agent.tool_result"]
    at = primary.index("session.thread_created")
    require_equal(primary[at : at + 6], [*begun, *done])
    require_equal([kind for kind in received if kind.startswith("session.thread")], [begun[0], begun[1], done[1]])
    require_equal(
        [event.type for event in inside if event.type.startswith("agent.")],
        [
            "agent.thread_message_received", "agent.message", "agent.tool_use", "agent.tool_result", "agent.message",
            "agent.thread_message_sent",
        ],
    )  # fmt: skip


@probe
async def a_subagents_pending_call_is_cross_posted(door: SdkClient) -> None:
    asking: Any = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
    scout = (await door.agent(name="scout", tools=[asking])).id
    asks = {"type": "coordinator", "agents": [scout]}
    lead = await door.agent(name="lead", tools=[TOOLSET], multiagent=asks, extra_body=_CLAUDE)
    session = await door.session(lead.id)
    waits = "session.thread_status_idle"
    received = await door.run_turn(session.id, "probe-ask", until=lambda event: event.type == waits)
    (use,) = [event for event in received if event.type == "agent.tool_use" and event.evaluated_permission == "ask"]
    require_equal((received[-1].stop_reason.type, received[-1].stop_reason.event_ids), ("requires_action", [use.id]))
    require_equal(use.session_thread_id, received[-1].session_thread_id)
    yes: Any = {"type": "user.tool_confirmation", "tool_use_id": use.id, "result": "allow"}
    rest = await door.watch(session.id, lambda: door.call("sessions.events.send", session.id, events=[yes]))
    (confirmation,) = [event for event in rest if event.type == "user.tool_confirmation"]
    require_equal((confirmation.tool_use_id, confirmation.session_thread_id), (use.id, use.session_thread_id))
    inside = await door.list_all("sessions.threads.events.list", use.session_thread_id, session_id=session.id)
    primary = await door.list_all("sessions.events.list", session.id)
    for listed in (inside, primary):
        require_equal({use.id, confirmation.id} - {event.id for event in listed}, set())
    (result,) = [event for event in inside if event.type == "agent.tool_result"]
    require_equal((result.tool_use_id, result.content[0].text.strip()), (use.id, "hello"))
    require_equal(result.id in {event.id for event in primary}, False)


@supported("UserInterruptEventParams", "session_thread_id", note="The ID of the primary thread interrupts all threads.")
async def an_interrupt_stops_one_thread(door: SdkClient) -> None:
    """The subagent waits for approval: the interrupt closes its call, and the agent goes on."""
    session, use = await _ask_in_thread(door)
    stop: Any = {"type": "user.interrupt", "session_thread_id": use.session_thread_id}
    rest = await door.watch(session.id, lambda: door.call("sessions.events.send", session.id, events=[stop]))
    require_equal((rest[-1].type, rest[-1].stop_reason.type), ("session.status_idle", "end_turn"))
    inside = await door.list_all("sessions.threads.events.list", use.session_thread_id, session_id=session.id)
    (result,) = [event for event in inside if event.type == "agent.tool_result"]
    require_equal((result.tool_use_id, result.is_error), (use.id, True))
    primary = await door.list_all("sessions.events.list", session.id)
    (answer,) = [event for event in primary if event.type == "agent.tool_result"]
    require_equal("interrupted this subagent" in answer.content[0].text, True)
    require_equal([event.content[0].text for event in primary if event.type == "agent.message"], ["It looked."])
    unknown: Any = {"type": "user.interrupt", "session_thread_id": "sthr_none"}
    await door.expect_error(
        anthropic.BadRequestError,
        "sessions.events.send",
        session.id,
        events=[unknown],
        field="events.0.session_thread_id",
    )
    await door.call("sessions.events.send", session.id, events=[stop])  # it is idle: nothing happens


@probe
async def a_waiting_subagent_of_native_goes_on_with_the_decision(door: SdkClient) -> None:
    session, use = await _ask_in_thread(door)
    yes: Any = {"type": "user.tool_confirmation", "tool_use_id": use.id, "result": "allow"}
    await door.watch(session.id, lambda: door.call("sessions.events.send", session.id, events=[yes]))
    inside = await door.list_all("sessions.threads.events.list", use.session_thread_id, session_id=session.id)
    (result,) = [event for event in inside if event.type == "agent.tool_result"]
    require_equal((result.tool_use_id, result.content[0].text.strip()), (use.id, "hello"))


async def _ask_in_thread(door: SdkClient) -> tuple[Any, Any]:
    """A session that is parked because its subagent's call needs approval, and that call."""
    asking: Any = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
    scout = (await door.agent(name="scout", tools=[asking])).id
    asks = {"type": "coordinator", "agents": [scout]}
    lead = await door.agent(name="lead", tools=[TOOLSET], multiagent=asks, extra_body=_NATIVE)
    session = await door.session(lead.id)
    received = await door.run_turn(session.id, "probe-ask-native")
    (use,) = [event for event in received if event.type == "agent.tool_use" and event.evaluated_permission == "ask"]
    require_equal((received[-1].stop_reason.type, received[-1].stop_reason.event_ids), ("requires_action", [use.id]))
    return session, use
