"""Parses messages of the Claude Agent SDK into the dataclasses of this module, and converts these to session events.

Every message class of the SDK has a parser here, and a test fails if the SDK adds a class. A message of an unknown
class becomes an `UnknownMessage`, which is only logged.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import claude_agent_sdk as sdk

from footplate.domain.agents.mcp_servers import ToolNames
from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.permissions import Decision
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event, Usage
from footplate.harness import model_prices
from footplate.harness.claude.transcripts import tool_names

TextEventType: TypeAlias = Literal["agent.message", "agent.thinking"]

_SYNTHETIC: Final = "<synthetic>"
_CONTENT: Final = frozenset({"text", "image", "document", "search_result"})
"""Content blocks of a tool result that events may contain."""


@dataclass(frozen=True, slots=True)
class CliStarted:
    """The CLI reported its session and version, as it does at the start of every turn."""

    session_id: str
    version: str


@dataclass(frozen=True, slots=True)
class ResponseStarted:
    """The model starts a response."""

    message_id: str
    model: str
    usage: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BlockStarted:
    """A block of the response starts. `is_certain`: the finished message is certain to contain it."""

    index: int
    is_certain: bool


@dataclass(frozen=True, slots=True)
class TextDelta:
    index: int
    kind: TextEventType
    text: str


@dataclass(frozen=True, slots=True)
class UsageUpdated:
    """The response's usage so far, and whether it has a stop reason."""

    usage: Mapping[str, Any]
    has_stop_reason: bool = True


@dataclass(frozen=True, slots=True)
class ResponseCompleted:
    """The response's stream ended. The CLI also sends this for a response that was cut off and has no stop reason."""


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    name: str
    input: JsonObject


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    content: tuple[JsonObject, ...]
    is_error: bool


@dataclass(frozen=True, slots=True)
class ResponseLine:
    """One line of a response: text, thinking and calls, in order."""

    message_id: str
    parts: tuple[tuple[TextEventType, str] | Call | None, ...]
    """None for a block that has no event."""
    is_synthetic: bool
    """Whether the CLI wrote this line about an error, instead of the model."""

    @property
    def calls(self) -> list[Call]:
        return [part for part in self.parts if isinstance(part, Call)]

    @property
    def text(self) -> str:
        return "".join(part[1] for part in self.parts if isinstance(part, tuple) and part[0] == "agent.message")


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Results of tool calls."""

    results: tuple[ToolResult, ...]
    is_rejection: bool = False
    """Whether the CLI wrote them for calls that it calls rejected by the user. The user is never asked inside the CLI,
    so it stopped them for an interrupt, maybe while they were running."""
    details: Json = None
    """The CLI's own fields of the result."""


@dataclass(frozen=True, slots=True)
class SubagentStarted:
    """A call started a subagent."""

    agent_id: str
    call_id: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The CLI finished the work on its prompt."""

    subtype: str
    is_error: bool
    text: str
    stop_reason: str | None
    status: int | None
    """HTTP status of the provider's error response."""


@dataclass(frozen=True, slots=True)
class TranscriptLineLost:
    """A part of the transcript could not be stored in the log."""

    error: str


@dataclass(frozen=True, slots=True)
class RateLimitReported:
    rejected: bool
    resets_at: float | None


@dataclass(frozen=True, slots=True)
class ContextCompacted:
    """The CLI replaced the older part of the conversation by a summary."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A known message that the log does not need. `kind` names it."""

    kind: str


@dataclass(frozen=True, slots=True)
class UnknownMessage:
    kind: str


Fact: TypeAlias = (
    CliStarted
    | ResponseStarted
    | BlockStarted
    | TextDelta
    | UsageUpdated
    | ResponseCompleted
    | ResponseLine
    | ToolResults
    | SubagentStarted
    | RunEnded
    | TranscriptLineLost
    | RateLimitReported
    | ContextCompacted
    | Ignored
    | UnknownMessage
)


def response_lines(message_id: str, facts: Sequence[Fact]) -> list[ResponseLine]:
    """The lines of one response, which may have several."""
    return [fact for fact in facts if isinstance(fact, ResponseLine) and fact.message_id == message_id]


def has_continued(facts: Sequence[Fact], refused: Collection[str]) -> bool:
    """Whether the conversation continued. Results of calls that the CLI refuses during the response do not count."""
    return any(
        isinstance(fact, ResponseLine)
        or (isinstance(fact, ToolResults) and not {*refused} >= {r.call_id for r in fact.results})
        for fact in facts
    )


def read_message(message: object) -> Fact:
    """Parses a message by its exact class, so that an unknown subclass is not mistaken for its parent."""
    reader = READERS.get(type(message))
    return reader(message) if reader is not None else UnknownMessage(type(message).__name__)


def _assistant(message: sdk.AssistantMessage) -> Fact:
    if message.parent_tool_use_id is not None:
        return Ignored("subagent")
    parts = tuple(_to_part(block) for block in message.content)
    return ResponseLine(message.message_id or "", parts, message.model == _SYNTHETIC or message.error is not None)


def _to_part(block: sdk.ContentBlock) -> tuple[TextEventType, str] | Call | None:
    match block:
        case sdk.TextBlock(text=text):
            return ("agent.message", text)
        case sdk.ThinkingBlock(thinking=thought):
            return ("agent.thinking", thought)
        case sdk.ToolUseBlock(id=call_id, name=name, input=tool_input):
            return Call(call_id, name, tool_input)
        case _:
            return None


def _user(message: sdk.UserMessage) -> Fact:
    if message.parent_tool_use_id is not None:
        return Ignored("subagent")
    blocks = message.content if isinstance(message.content, list) else []
    results = tuple(
        ToolResult(block.tool_use_id, _result_content(block.content), bool(block.is_error))
        for block in blocks
        if isinstance(block, sdk.ToolResultBlock)
    )
    return ToolResults(results) if results else Ignored("user")


def _result_content(content: str | list[dict[str, Any]] | None) -> tuple[JsonObject, ...]:
    if isinstance(content, list):
        return tuple(block for block in content if block.get("type") in _CONTENT)
    return (ev.text_block(content or ""),)


def _stream_event(message: sdk.StreamEvent) -> Fact:
    if message.parent_tool_use_id is not None:
        return Ignored("subagent")
    event = message.event
    kind = str(event.get("type"))
    reader = _STREAM.get(kind)
    return reader(event) if reader is not None else UnknownMessage(f"stream_event {kind}")


def _block_started(event: Mapping[str, Any]) -> Fact:
    return BlockStarted(int(event["index"]), event["content_block"].get("type") == "tool_use")


def _delta(event: Mapping[str, Any]) -> Fact:
    delta = event["delta"]
    match delta.get("type"):
        case "text_delta":
            return TextDelta(int(event["index"]), "agent.message", str(delta["text"]))
        case "thinking_delta":
            return TextDelta(int(event["index"]), "agent.thinking", str(delta["thinking"]))
        case kind:
            return Ignored(f"delta {kind}")


def _has_stop_reason(event: Mapping[str, Any]) -> bool:
    return (event.get("delta") or {}).get("stop_reason") is not None


_STREAM: Final[Mapping[str, Callable[[Mapping[str, Any]], Fact]]] = {
    "message_start": lambda event: ResponseStarted(
        str(event["message"].get("id")), str(event["message"].get("model")), event["message"].get("usage") or {}
    ),
    "content_block_start": _block_started,
    "content_block_delta": _delta,
    "content_block_stop": lambda _: Ignored("block_end"),
    "message_delta": lambda event: UsageUpdated(event.get("usage") or {}, _has_stop_reason(event)),
    "message_stop": lambda _: ResponseCompleted(),
    "ping": lambda _: Ignored("ping"),
    "error": lambda _: Ignored("stream_error"),
}


def _system(message: sdk.SystemMessage) -> Fact:
    data = message.data
    if message.subtype == "init":
        return CliStarted(str(data.get("session_id") or ""), str(data.get("claude_code_version") or ""))
    if message.subtype == "compact_boundary":
        return ContextCompacted()
    return Ignored(message.subtype) if message.subtype in _SUBTYPES else UnknownMessage(f"system {message.subtype}")


_SUBTYPES: Final = frozenset(
    {
        "api_retry", "away_summary", "compact_metadata", "elicitation_complete", "files_persisted", "hook_progress",
        "informational", "local_command", "local_command_output", "notification", "permission_denied",
        "session_state_changed", "status", "thinking_tokens", "tool_progress", "turn_duration",
    }
)  # fmt: skip


def _result(message: sdk.ResultMessage) -> Fact:
    text = "; ".join(message.errors or ()) or message.result or ""
    return RunEnded(message.subtype, message.is_error, text, message.stop_reason, message.api_error_status)


def _rate_limit(message: sdk.RateLimitEvent) -> Fact:
    info = message.rate_limit_info
    return RateLimitReported(info.status == "rejected", info.resets_at)


def _task_started(message: sdk.TaskStartedMessage) -> Fact:
    return SubagentStarted(message.task_id, message.tool_use_id) if message.tool_use_id else Ignored("task_started")


READERS: Final[Mapping[type, Callable[[Any], Fact]]] = {
    sdk.AssistantMessage: _assistant,
    sdk.UserMessage: _user,
    sdk.SystemMessage: _system,
    sdk.StreamEvent: _stream_event,
    sdk.ResultMessage: _result,
    sdk.RateLimitEvent: _rate_limit,
    sdk.MirrorErrorMessage: lambda message: TranscriptLineLost(message.error),
    sdk.TaskStartedMessage: _task_started,
    sdk.TaskProgressMessage: lambda _: Ignored("task_progress"),
    sdk.TaskUpdatedMessage: lambda _: Ignored("task_updated"),
    sdk.TaskNotificationMessage: lambda _: Ignored("task_notification"),
    sdk.HookEventMessage: lambda _: Ignored("hook"),
    sdk.ConversationResetMessage: lambda _: Ignored("conversation_reset"),
}
"""By message class."""


def text_events(
    parts: Sequence[tuple[TextEventType, str] | Call | None], preview_ids: Mapping[int, str]
) -> list[Event]:
    """The text and thinking events of a response. `preview_ids`: the ids of the previews, by block index."""
    events: list[Event] = []
    for index, part in enumerate(parts):
        if part is not None and not isinstance(part, Call) and part[1]:
            create = ev.message if part[0] == "agent.message" else ev.thinking
            events.append(create(part[1], event_id=preview_ids.get(index)))
    return events


def tool_use_event(call: Call, names: ToolNames, decision: Decision | None = None) -> Event:
    if (ref := names.resolve(call.name)) is not None:
        return ev.mcp_tool_use(*ref, call.input, call_id=call.id, decision=decision)
    tool_input = tool_names.footplate_input(call.name, call.input)
    return ev.tool_use(tool_names.footplate_name(call.name), tool_input, call_id=call.id, decision=decision)


def tool_result_event(use: Event, result: ToolResult, command: JsonObject | None = None) -> Event:
    blocks: list[Json] = [*result.content]
    return ev.tool_result_for(use, blocks, is_error=result.is_error, call_id=result.call_id, command=command)


def to_usage(model: str, token_counts: Mapping[str, Any]) -> Usage:
    tokens = {name: token_counts.get(name) or 0 for name in _TOKENS}
    counted_usage = Usage(
        input_tokens=tokens["input_tokens"],
        output_tokens=tokens["output_tokens"],
        cache_read_tokens=tokens["cache_read_input_tokens"],
        cache_write_tokens=tokens["cache_creation_input_tokens"],
        requests=1,
    )
    return model_prices.with_cost(counted_usage, "anthropic", model)


_TOKENS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
