"""Defines the steps of a scripted reply, such as text, a tool call or an error. Each kind of step has a frozen
dataclass and a function that creates it.

The fields of a step are also its JSON form: `text("Hi", chunks=2)` is `{"text": "Hi", "chunks": 2}`. The first field
names the kind of step. `server.reply_playback` converts steps to bytes and pauses. Error types and stop reasons have
Anthropic's names, and `wire` converts them for the other formats.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"]

ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Text:
    """A block of text, sent in `chunks` deltas, `delay` seconds apart, after `start_delay` seconds."""

    text: str
    chunks: int = 4
    delay: float = 0
    start_delay: float = 0


@dataclass(frozen=True, slots=True)
class Thinking:
    thinking: str
    chunks: int = 2
    delay: float = 0
    start_delay: float = 0
    signature: str = "c2NyaXB0ZWQ="


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool call. Without an id, it gets a new one in every reply."""

    tool: str
    input: dict[str, object] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Stamps:
    """A block of text with this number of deltas, each of which is the time of sending and a space.

    It measures the delay until a delta arrives at a receiver on the same machine.
    """

    stamps: int
    delay: float = 0
    start_delay: float = 0


@dataclass(frozen=True, slots=True)
class Sleep:
    """A pause. Before any content it delays the response headers; later, the next block."""

    sleep: float


@dataclass(frozen=True, slots=True)
class Hang:
    """Sends nothing more until the client disconnects."""

    hang: Literal[True]


@dataclass(frozen=True, slots=True)
class Cut:
    """Closes the connection in the middle of the response, inside the preceding block if there is one.

    `quiet` ends the HTTP response properly instead, like a proxy that lost the provider: only the end of the reply is
    missing.
    """

    cut: Literal[True]
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error. Before any content it is the HTTP status; later, an `error` event in the stream."""

    http_error: int
    type: str | None = None
    message: str = "scripted error"
    retry_after: float | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tokens:
    input_tokens: int = 1000
    output_tokens: int = 100
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of the whole reply, at any position among its steps."""

    usage: Tokens


@dataclass(frozen=True, slots=True)
class Stop:
    """The stop reason of the reply, instead of `end_turn` or `tool_use`."""

    stop_reason: StopReason


Content: TypeAlias = Text | Thinking | Tool | Stamps
Step: TypeAlias = Content | Sleep | Hang | Cut | HttpError | Usage | Stop
STEP_KINDS: Final[Mapping[str, type[Step]]] = {
    "text": Text,
    "thinking": Thinking,
    "tool": Tool,
    "stamps": Stamps,
    "sleep": Sleep,
    "hang": Hang,
    "cut": Cut,
    "http_error": HttpError,
    "usage": Usage,
    "stop_reason": Stop,
}


def text(content: str, *, chunks: int = 4, delay: float = 0, start_delay: float = 0) -> Text:
    return Text(content, chunks, delay, start_delay)


def thinking(
    content: str, *, chunks: int = 2, delay: float = 0, start_delay: float = 0, signature: str = "c2NyaXB0ZWQ="
) -> Thinking:
    return Thinking(content, chunks, delay, start_delay, signature)


def tool(name: str, tool_input: Mapping[str, object] | None = None, *, call_id: str | None = None) -> Tool:
    return Tool(name, dict(tool_input or {}), call_id)


def stamps(count: int, *, delay: float = 0, start_delay: float = 0) -> Stamps:
    return Stamps(count, delay, start_delay)


def sleep(seconds: float) -> Sleep:
    return Sleep(seconds)


def hang() -> Hang:
    return Hang(hang=True)


def cut(*, quiet: bool = False) -> Cut:
    return Cut(cut=True, quiet=quiet)


def http_error(
    status: int,
    *,
    error_type: str | None = None,
    message: str = "scripted error",
    retry_after: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpError:
    return HttpError(status, error_type, message, retry_after, dict(headers or {}))


def unauthorized() -> HttpError:
    return http_error(401, message="invalid x-api-key")


def rate_limited(retry_after: float = 1) -> HttpError:
    return http_error(429, message="this request would exceed your rate limit", retry_after=retry_after)


def server_error() -> HttpError:
    return http_error(500, message="internal server error")


def overloaded() -> HttpError:
    return http_error(529, message="overloaded")


def usage(input_tokens: int = 1000, output_tokens: int = 100, *, cache_read: int = 0, cache_write: int = 0) -> Usage:
    return Usage(Tokens(input_tokens, output_tokens, cache_read, cache_write))


def stop(reason: StopReason) -> Stop:
    return Stop(reason)
