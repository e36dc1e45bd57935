"""Events of a session, and their positions in the session's log.

An *event* has an id, a type and a body. A *position* is one line of the log: it records an event at a sequence number
(`seq`), which alone defines the order. A queued input has two positions: one when it is accepted (`processed_at` is
null), and one when a turn processes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from footplate.domain import ids
from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.permissions import Decision
from footplate.domain.sessions.ending import SessionEnd

USER_MESSAGE: Final = "user.message"
USER_INTERRUPT: Final = "user.interrupt"
USER_TOOL_CONFIRMATION: Final = "user.tool_confirmation"
USER_CUSTOM_TOOL_RESULT: Final = "user.custom_tool_result"
AGENT_MESSAGE: Final = "agent.message"
AGENT_THINKING: Final = "agent.thinking"
AGENT_TOOL_USE: Final = "agent.tool_use"
AGENT_TOOL_RESULT: Final = "agent.tool_result"
AGENT_CUSTOM_TOOL_USE: Final = "agent.custom_tool_use"
AGENT_MCP_TOOL_USE: Final = "agent.mcp_tool_use"
AGENT_MCP_TOOL_RESULT: Final = "agent.mcp_tool_result"
CONTEXT_COMPACTED: Final = "agent.thread_context_compacted"
STATUS_RUNNING: Final = "session.status_running"
STATUS_IDLE: Final = "session.status_idle"
STATUS_RESCHEDULED: Final = "session.status_rescheduled"
STATUS_TERMINATED: Final = "session.status_terminated"
SESSION_ERROR: Final = "session.error"
SESSION_UPDATED: Final = "session.updated"
SESSION_DELETED: Final = "session.deleted"
MODEL_REQUEST_START: Final = "span.model_request_start"
MODEL_REQUEST_END: Final = "span.model_request_end"

SETUP_STARTED: Final = "project.setup_started"
SETUP_ENDED: Final = "project.setup_ended"
SETUP_TOOL: Final = "bash"
"""The tool that the setup command of a project is a call of, for the gate and the audit trail."""
TOOL_USES: Final = frozenset({AGENT_TOOL_USE, AGENT_MCP_TOOL_USE})
TOOL_RESULTS: Final = frozenset({AGENT_TOOL_RESULT, AGENT_MCP_TOOL_RESULT})
"""Results of tools that Footplate runs. Custom tools are run by the client."""

EXTENSION_PREFIXES: Final = ("step.", "question.", "batch.", "project.")
"""Events that the reference API does not have. Lists and streams of a session have them only on request."""

VERSION: Final = 1
"""The version of a stored event body. Old versions can always be loaded; tests/unit has a sample of each."""

PreviewType = Literal["agent.message", "agent.thinking"]
RetryStatus = Literal["retrying", "exhausted", "terminal"]


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    body: JsonObject = field(default_factory=dict)
    id: str = field(default_factory=lambda: ids.new_id(ids.EVENT))


@dataclass(frozen=True, slots=True)
class Position:
    seq: int
    event: Event
    created_at: datetime
    processed_at: datetime | None
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token usage of one or more model requests."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    cost_microusd: int | None = None
    """None if the price of the model is unknown."""

    def __add__(self, other: "Usage") -> "Usage":
        costs = [cost for cost in (self.cost_microusd, other.cost_microusd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            requests=self.requests + other.requests,
            cost_microusd=sum(costs) if costs else None,
        )


def to_wire(position: Position) -> JsonObject:
    """Return the event in the form that clients receive."""
    processed_at = position.processed_at.isoformat().replace("+00:00", "Z") if position.processed_at else None
    identity: JsonObject = {"id": position.event.id, "type": position.event.type}
    return (
        identity | position.event.body | identity | {"processed_at": processed_at}
    )  # a body cannot override the id or type


def is_extension(event_type: str) -> bool:
    return event_type.startswith(EXTENSION_PREFIXES)


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def message(text: str, *, event_id: str | None = None) -> Event:
    return _event(AGENT_MESSAGE, {"content": [text_block(text)]}, event_id)


def thinking(text: str, *, event_id: str | None = None) -> Event:
    """The reference API's event has no text; Footplate adds it as an extra field."""
    return _event(AGENT_THINKING, {"thinking": text}, event_id)


def tool_use(name: str, tool_input: JsonObject, *, call_id: str, decision: Decision | None = None) -> Event:
    """Build the event of a tool call. `call_id`, the model's id of the call, is an extra field: it lets a restarted
    turn match calls and results. `decision` is None if the gate was not asked, because the tool does not exist.
    """
    body: JsonObject = {"name": name, "input": tool_input, **permission_fields(decision), "call_id": call_id}
    return Event(AGENT_TOOL_USE, body)


def setup_input(body: Mapping[str, Json]) -> JsonObject:
    """Return the input of the call that a setup is, from the body of the event that says that it has started."""
    return {"command": body.get("command")}


def permission_fields(decision: Decision | None) -> JsonObject:
    """Return the fields of a call's event that say what the gate decided."""
    if decision is None:
        return {"evaluated_permission": "allow"}
    event_fields = decision.event_fields
    return {
        "evaluated_permission": decision.outcome.value,
        **({} if event_fields is None else {"permission": event_fields}),
    }


def needs_approval(event: Event) -> bool:
    """Whether this call waits for a person's approval."""
    return is_approval_request(event.type, event.body)


def is_approval_request(event_type: str, body: Mapping[str, Json]) -> bool:
    return event_type in TOOL_USES and body.get("evaluated_permission") == "ask"


def tool_result(
    tool_use_id: str, content: Sequence[Json], *, is_error: bool, call_id: str, command: JsonObject | None = None
) -> Event:
    """`command` describes what a command did, as an extra field."""
    body: JsonObject = {"tool_use_id": tool_use_id, "content": list(content), "is_error": is_error, "call_id": call_id}
    return Event(AGENT_TOOL_RESULT, body if command is None else {**body, "command": command})


def mcp_tool_use(
    server: str, name: str, tool_input: JsonObject, *, call_id: str, decision: Decision | None = None
) -> Event:
    body: JsonObject = {
        "mcp_server_name": server,
        "name": name,
        "input": tool_input,
        **permission_fields(decision),
        "call_id": call_id,
    }
    return Event(AGENT_MCP_TOOL_USE, body)


def tool_result_for(
    use: Event, content: Sequence[Json], *, is_error: bool, call_id: str, command: JsonObject | None = None
) -> Event:
    """Build the result of a call to a built-in tool or an MCP tool."""
    if use.type != AGENT_MCP_TOOL_USE:
        return tool_result(use.id, content, is_error=is_error, call_id=call_id, command=command)
    body: JsonObject = {"mcp_tool_use_id": use.id, "content": list(content), "is_error": is_error, "call_id": call_id}
    return Event(AGENT_MCP_TOOL_RESULT, body)


def custom_tool_use(name: str, tool_input: JsonObject, *, call_id: str, context: JsonObject | None = None) -> Event:
    """`context` is that of the session and of the input, for the client that runs the call, as an extra field."""
    body: JsonObject = {"name": name, "input": tool_input, "call_id": call_id}
    return Event(AGENT_CUSTOM_TOOL_USE, {**body, "context": context} if context else body)


def context_compacted() -> Event:
    """The model receives a shortened conversation from here on. The log still has all of it."""
    return Event(CONTEXT_COMPACTED)


def status_running() -> Event:
    return Event(STATUS_RUNNING)


def status_rescheduled() -> Event:
    return Event(STATUS_RESCHEDULED)


def status_idle(stop_reason: JsonObject) -> Event:
    return Event(STATUS_IDLE, {"stop_reason": stop_reason})


def status_terminated(end: SessionEnd) -> Event:
    """Build the last event of a session. How it ended is in extra fields."""
    return Event(STATUS_TERMINATED, {"outcome": end.outcome.value, "reason": end.reason, "ended_by": end.ended_by})


def forked(session_id: str, event_id: str | None, position: int) -> Event:
    """Build the first event of a fork. The fork is idle whatever its parent was doing at that point. The parent's
    position is an extra field.
    """
    origin: JsonObject = {"session_id": session_id, "event_id": event_id, "position": position}
    return Event(STATUS_IDLE, {"stop_reason": {"type": "end_turn"}, "forked_from": origin})


def imported(transcript_id: str, version: str) -> Event:
    """Build the event that ends an imported history. The transcript's original id is an extra field."""
    origin: JsonObject = {"transcript_id": transcript_id, "version": version}
    return Event(STATUS_IDLE, {"stop_reason": {"type": "end_turn"}, "imported_from": origin})


def session_error(error_type: str, text: str, retry_status: RetryStatus) -> Event:
    error: JsonObject = {"type": error_type, "message": text, "retry_status": {"type": retry_status}}
    return Event(SESSION_ERROR, {"error": error})


def mcp_error(server: str, text: str, *, is_authentication: bool) -> Event:
    """An MCP server of the agent cannot be used. The turn continues without it, and the next turn tries it again."""
    error: JsonObject = {
        "type": "mcp_authentication_failed_error" if is_authentication else "mcp_connection_failed_error",
        "mcp_server_name": server,
        "message": text,
        "retry_status": {"type": "retrying"},
    }
    return Event(SESSION_ERROR, {"error": error})


def model_request_start(*, repository: JsonObject | None = None) -> Event:
    """`repository` lists the project instructions that were loaded for the following requests, as an extra field."""
    return Event(MODEL_REQUEST_START, {} if repository is None else {"repository": repository})


def model_request_end(start_id: str, usage: Usage, *, is_error: bool) -> Event:
    model_usage: JsonObject = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }
    return Event(
        MODEL_REQUEST_END,
        {"model_request_start_id": start_id, "model_usage": model_usage, "is_error": is_error},
    )


def _event(event_type: str, body: JsonObject, event_id: str | None) -> Event:
    return Event(event_type, body, event_id) if event_id else Event(event_type, body)
