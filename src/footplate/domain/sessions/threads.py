"""Threads of a session: the primary thread, and one for each subagent that was given work.

All threads share the session's log. An event of a subagent's thread has the thread's id in `session_thread_id`. The
work of a subagent is visible only in its own thread, as in the reference API (Anthropic's managed agents). Its
lifecycle events, calls that wait for the client, the client's responses and interrupts are also visible in the primary
thread.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from footplate.domain import ids
from footplate.domain.json import Json, JsonObject
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event, Position, Usage

THREAD_ID: Final = "session_thread_id"
CREATED: Final = "session.thread_created"
RUNNING: Final = "session.thread_status_running"
IDLE: Final = "session.thread_status_idle"
MESSAGE_SENT: Final = "agent.thread_message_sent"
MESSAGE_RECEIVED: Final = "agent.thread_message_received"
LIFECYCLE_EVENTS: Final = (CREATED, RUNNING, IDLE)
"""The lifecycle events of a thread."""

_FOR_THE_CLIENT: Final = frozenset(
    {ev.USER_TOOL_CONFIRMATION, ev.AGENT_CUSTOM_TOOL_USE, ev.USER_CUSTOM_TOOL_RESULT, ev.USER_INTERRUPT}
)

SUBAGENT_TOOL: Final = "Agent"
"""The tool with which a model gives work to a subagent."""


_SUBAGENT_PARAMETERS: Final = frozenset({"description", "prompt", "subagent_type"})
"""Parameters that a call of this tool may have. Others would override the subagent's definition."""


def subagent_refusal(call_input: Mapping[str, Json], names: Sequence[str]) -> str | None:
    """Why a call starts no subagent, as a message for the model. None if it may start one of these."""
    if call_input.get("subagent_type") not in names:
        return f"This subagent does not exist. Set `subagent_type` to one of: {', '.join(names)}."
    unsupported = sorted(name for name, value in call_input.items() if name not in _SUBAGENT_PARAMETERS and value)
    if unsupported:
        return (
            f"These subagent parameters cannot be set in a call: {', '.join(unsupported)}. Remove them and try again."
        )
    return None


def events_of(events: Iterable[Event], thread_id: str | None) -> list[Event]:
    """Return the events of one thread, without its id. None: the agent's own events."""
    own = [event for event in events if event.body.get(THREAD_ID) == thread_id]
    if thread_id is None:
        return own
    return [
        replace(event, body={name: value for name, value in event.body.items() if name != THREAD_ID}) for event in own
    ]


def is_interrupt_of(event: Event, thread_id: str) -> bool:
    """Whether the event interrupts only this thread."""
    return event.type == ev.USER_INTERRUPT and event.body.get(THREAD_ID) == thread_id


def primary_id(session_id: str) -> str:
    """Derive the id of the primary thread from the session id. It is not stored."""
    return f"{ids.THREAD}_{session_id.removeprefix(f'{ids.SESSION}_')}"


def is_visible(
    event_type: str, body: Mapping[str, Json], thread_id: str | None, *, with_extensions: bool = False
) -> bool:
    """Whether an event is visible in this thread. None: the primary thread, which also shows cross-posted events."""
    if ev.is_extension(event_type) and not with_extensions:
        return False
    if thread_id is None:
        return body.get(THREAD_ID) is None or event_type in LIFECYCLE_EVENTS or _is_for_people(event_type, body)
    return body.get(THREAD_ID) == thread_id and event_type != CREATED


def _is_for_people(event_type: str, body: Mapping[str, Json]) -> bool:
    """Whether the event waits for the client, or is the client's response."""
    return event_type in _FOR_THE_CLIENT or ev.is_approval_request(event_type, body)


def in_thread(event: Event, thread_id: str | None) -> Event:
    """Return the event with the id of this thread."""
    return event if thread_id is None else replace(event, body={**event.body, THREAD_ID: thread_id})


def call_in_thread(use: Event, thread_id: str | None, name: str | None) -> Event:
    """Return a call with the id of this thread. If it needs approval, an extra field names the subagent."""
    if thread_id is None or not ev.needs_approval(use):
        return in_thread(use, thread_id)
    return in_thread(replace(use, body={**use.body, "agent_name": name}), thread_id)


def in_same_thread(event: Event, other: Event) -> Event:
    """Return `other` with the thread id of `event`."""
    thread_id = event.body.get(THREAD_ID)
    return in_thread(other, thread_id if isinstance(thread_id, str) else None)


def created(thread_id: str, name: str, call_id: str) -> Event:
    """`call_id` is the id of the call that started the thread, as an extra field."""
    return Event(CREATED, {THREAD_ID: thread_id, "agent_name": name, "call_id": call_id})


def running(thread_id: str, name: str) -> Event:
    return Event(RUNNING, {THREAD_ID: thread_id, "agent_name": name})


def idle(thread_id: str, name: str, usage: Usage) -> Event:
    """`usage` is the usage of the whole thread, as an extra field."""
    body: JsonObject = {THREAD_ID: thread_id, "agent_name": name, "stop_reason": {"type": "end_turn"}}
    return Event(IDLE, {**body, "usage": dump_usage(usage)})


def waiting(thread_id: str, name: str, event_ids: Sequence[str]) -> Event:
    """The thread waits for approval of these calls. It continues when it has a decision or gives up."""
    reason: JsonObject = {"type": "requires_action", "event_ids": [*event_ids]}
    return Event(IDLE, {THREAD_ID: thread_id, "agent_name": name, "stop_reason": reason})


def _is_waiting(event: Event) -> bool:
    reason = event.body.get("stop_reason")
    return isinstance(reason, dict) and reason.get("type") == "requires_action"


def sent(text: str, thread_id: str, name: str | None) -> Event:
    """`name` is None for the agent of the primary thread."""
    body: JsonObject = {"content": [ev.text_block(text)], "to_session_thread_id": thread_id}
    return Event(MESSAGE_SENT, body if name is None else {**body, "to_agent_name": name})


def received(text: str, thread_id: str, name: str | None) -> Event:
    body: JsonObject = {"content": [ev.text_block(text)], "from_session_thread_id": thread_id}
    return Event(MESSAGE_RECEIVED, body if name is None else {**body, "from_agent_name": name})


def end_open_threads(turn_events: Sequence[Event]) -> list[Event]:
    """Build the end event for each thread that is still running according to these events."""
    names: dict[str, str] = {}
    usage_by_thread: dict[str, Usage] = {}
    for event in turn_events:
        thread_id = str(event.body.get(THREAD_ID))
        if event.type == RUNNING:
            names[thread_id] = str(event.body.get("agent_name"))
        elif event.type == IDLE and not _is_waiting(event):
            names.pop(thread_id, None)
        elif event.type == ev.MODEL_REQUEST_END:
            counted = load_usage(event.body.get("model_usage"))
            usage_by_thread[thread_id] = usage_by_thread.get(thread_id, Usage()) + replace(counted, requests=1)
    return [idle(thread_id, name, usage_by_thread.get(thread_id, Usage())) for thread_id, name in names.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A subagent's thread, reconstructed from the log."""

    id: str
    agent_name: str
    created_at: datetime
    updated_at: datetime
    is_running: bool = False
    active_seconds: float = 0.0
    usage: Usage | None = None
    """None until the thread has been idle."""


def load_threads(positions: Iterable[Position]) -> list[Thread]:
    """Reconstruct the threads from their lifecycle events, oldest first."""
    threads: dict[str, Thread] = {}
    for position in positions:
        event, at = position.event, position.created_at
        thread_id = str(event.body.get(THREAD_ID))
        if event.type == CREATED:
            name = str(event.body.get("agent_name"))
            threads[thread_id] = Thread(id=thread_id, agent_name=name, created_at=at, updated_at=at)
        elif (thread := threads.get(thread_id)) is not None:
            threads[thread_id] = _apply_event(thread, event, at)
    return [*threads.values()]


def _apply_event(thread: Thread, event: Event, at: datetime) -> Thread:
    spent = (at - thread.updated_at).total_seconds() if thread.is_running else 0.0
    changed = replace(thread, updated_at=at, active_seconds=round(thread.active_seconds + spent, 3))
    if event.type != IDLE:
        return replace(changed, is_running=True)
    if _is_waiting(event):
        return replace(changed, is_running=False)
    return replace(changed, is_running=False, usage=load_usage(event.body.get("usage")))


def dump_usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "requests": usage.requests,
        "cost_microusd": usage.cost_microusd,
    }


def load_usage(stored: Json) -> Usage:
    counted = stored if isinstance(stored, dict) else {}
    numbers = {name: value for name, value in counted.items() if isinstance(value, int)}
    return Usage(
        input_tokens=numbers.get("input_tokens", 0),
        output_tokens=numbers.get("output_tokens", 0),
        cache_read_tokens=numbers.get("cache_read_input_tokens", 0),
        cache_write_tokens=numbers.get("cache_creation_input_tokens", 0),
        requests=numbers.get("requests", 0),
        cost_microusd=numbers.get("cost_microusd"),
    )
