"""Threads of a session: the primary one, and one for each subagent that was asked for help. Pure.

A session has one log, whatever its threads do. An event of a subagent's thread names it (`session_thread_id`), and so
do those that tell the session of it: that it began, works or is done. The primary thread is what the session itself
shows: all that is not a subagent's own. So what a subagent does is read in its thread, as in the reference; only what a
person is asked about its calls, and the answer, is in both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from footplate.domain import events as ev
from footplate.domain import ids
from footplate.domain.events import Event, Position, Usage
from footplate.domain.json import Json, JsonObject

THREAD_ID: Final = "session_thread_id"
CREATED: Final = "session.thread_created"
RUNNING: Final = "session.thread_status_running"
IDLE: Final = "session.thread_status_idle"
MESSAGE_SENT: Final = "agent.thread_message_sent"
MESSAGE_RECEIVED: Final = "agent.thread_message_received"
LIFE: Final = (CREATED, RUNNING, IDLE)
"""What tells the session of a thread."""

TOOL: Final = "Agent"
"""What the model calls to ask a subagent."""


def primary_id(session_id: str) -> str:
    """The same for ever, without being stored."""
    return f"{ids.THREAD}_{session_id.removeprefix(f'{ids.SESSION}_')}"


def shown(event_type: str, body: Mapping[str, Json], thread_id: str | None) -> bool:
    """Whether an event is seen in this thread. None: the primary one, which sees what is cross-posted to it too."""
    if thread_id is None:
        return body.get(THREAD_ID) is None or event_type in LIFE or _is_for_people(event_type, body)
    return body.get(THREAD_ID) == thread_id and event_type != CREATED


def _is_for_people(event_type: str, body: Mapping[str, Json]) -> bool:
    """A call that waits for somebody's word, or the word."""
    return event_type == ev.USER_TOOL_CONFIRMATION or ev.is_ask(event_type, body)


def inside(event: Event, thread_id: str | None) -> Event:
    """The same event, as one of this thread."""
    return event if thread_id is None else replace(event, body={**event.body, THREAD_ID: thread_id})


def asking(use: Event, thread_id: str | None, name: str | None) -> Event:
    """A call, as one of this thread. Where a person is asked about it, an extra field says whose it is."""
    if thread_id is None or not ev.asks(use):
        return inside(use, thread_id)
    return inside(replace(use, body={**use.body, "agent_name": name}), thread_id)


def beside(event: Event, other: Event) -> Event:
    """`other`, as one of the same thread as `event`."""
    thread_id = event.body.get(THREAD_ID)
    return inside(other, thread_id if isinstance(thread_id, str) else None)


def created(thread_id: str, name: str, call_id: str) -> Event:
    """`call_id`: of the call that began it, as an extra field."""
    return Event(CREATED, {THREAD_ID: thread_id, "agent_name": name, "call_id": call_id})


def running(thread_id: str, name: str) -> Event:
    return Event(RUNNING, {THREAD_ID: thread_id, "agent_name": name})


def idle(thread_id: str, name: str, used: Usage) -> Event:
    """`used`: by the whole thread, as an extra field."""
    body: JsonObject = {THREAD_ID: thread_id, "agent_name": name, "stop_reason": {"type": "end_turn"}}
    return Event(IDLE, {**body, "usage": _dumped(used)})


def waiting(thread_id: str, name: str, event_ids: Sequence[str]) -> Event:
    """For a person's word on these calls. It goes on as soon as it has it, or gives up."""
    reason: JsonObject = {"type": "requires_action", "event_ids": [*event_ids]}
    return Event(IDLE, {THREAD_ID: thread_id, "agent_name": name, "stop_reason": reason})


def _waits(event: Event) -> bool:
    reason = event.body.get("stop_reason")
    return isinstance(reason, dict) and reason.get("type") == "requires_action"


def sent(text: str, thread_id: str, name: str | None) -> Event:
    """`name`: None for the primary thread's agent."""
    body: JsonObject = {"content": [ev.text_block(text)], "to_session_thread_id": thread_id}
    return Event(MESSAGE_SENT, body if name is None else {**body, "to_agent_name": name})


def received(text: str, thread_id: str, name: str | None) -> Event:
    body: JsonObject = {"content": [ev.text_block(text)], "from_session_thread_id": thread_id}
    return Event(MESSAGE_RECEIVED, body if name is None else {**body, "from_agent_name": name})


def left_open(turn_events: Sequence[Event]) -> list[Event]:
    """An end for each thread that works, by what the log says."""
    names: dict[str, str] = {}
    used: dict[str, Usage] = {}
    for event in turn_events:
        thread_id = str(event.body.get(THREAD_ID))
        if event.type == RUNNING:
            names[thread_id] = str(event.body.get("agent_name"))
        elif event.type == IDLE and not _waits(event):
            names.pop(thread_id, None)
        elif event.type == ev.MODEL_REQUEST_END:
            counted = _loaded(event.body.get("model_usage"))
            used[thread_id] = used.get(thread_id, Usage()) + replace(counted, requests=1)
    return [idle(thread_id, name, used.get(thread_id, Usage())) for thread_id, name in names.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A subagent's thread, as far as the log tells."""

    id: str
    agent_name: str
    created_at: datetime
    updated_at: datetime
    works: bool = False
    active_seconds: float = 0.0
    usage: Usage | None = None
    """None until it has been idle."""


def of_log(positions: Iterable[Position]) -> list[Thread]:
    """`positions`: those that tell of threads, oldest first."""
    found: dict[str, Thread] = {}
    for position in positions:
        event, moment = position.event, position.created_at
        thread_id = str(event.body.get(THREAD_ID))
        if event.type == CREATED:
            name = str(event.body.get("agent_name"))
            found[thread_id] = Thread(id=thread_id, agent_name=name, created_at=moment, updated_at=moment)
        elif (thread := found.get(thread_id)) is not None:
            found[thread_id] = _changed(thread, event, moment)
    return [*found.values()]


def _changed(thread: Thread, event: Event, moment: datetime) -> Thread:
    spent = (moment - thread.updated_at).total_seconds() if thread.works else 0.0
    changed = replace(thread, updated_at=moment, active_seconds=round(thread.active_seconds + spent, 3))
    if event.type != IDLE:
        return replace(changed, works=True)
    if _waits(event):
        return replace(changed, works=False)
    return replace(changed, works=False, usage=_loaded(event.body.get("usage")))


def _dumped(used: Usage) -> JsonObject:
    return {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_input_tokens": used.cache_read_tokens,
        "cache_creation_input_tokens": used.cache_write_tokens,
        "requests": used.requests,
        "cost_microusd": used.cost_microusd,
    }


def _loaded(stored: Json) -> Usage:
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
