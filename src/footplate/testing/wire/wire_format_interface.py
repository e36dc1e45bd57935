"""The interface that each wire format of the scripted model implements. A wire format reads the conversation from a
request and encodes a reply.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from footplate.domain.json import Json, JsonObject
from footplate.testing import reply_steps as s
from footplate.testing.reply_steps import Step

Role = Literal["system", "user", "assistant", "tool"]


class ConversationMessage(NamedTuple):
    """One message of the conversation. The text of tool results is omitted."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class ReplyEnvelope:
    """The parts of a reply that do not change while it is streamed."""

    model: str
    usage: s.Tokens
    stop_reason: s.StopReason
    request: JsonObject

    @classmethod
    def from_steps(cls, steps: Sequence[Step], request: JsonObject) -> "ReplyEnvelope":
        calls = any(isinstance(step, s.Tool) for step in steps)
        return cls(
            model=str(request.get("model")),
            usage=next((step.usage for step in steps if isinstance(step, s.Usage)), s.Tokens()),
            stop_reason=next(
                (step.stop_reason for step in steps if isinstance(step, s.Stop)), "tool_use" if calls else "end_turn"
            ),
            request=request,
        )


@dataclass(slots=True)
class Block:
    """A content step and the pieces sent so far. The pieces of a tool call are its input as JSON."""

    step: s.Content
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class ReplyEncoder(Protocol):
    """Encodes one reply as frames. Each method is called when its frame is due, and every reply has a new encoder."""

    def start_reply(self) -> bytes: ...

    def start_block(self, step: s.Content) -> bytes:
        """Starts the block of a step."""
        ...

    def delta(self, text: str) -> bytes:
        """Encodes the next piece of the current block. This is the hot path."""
        ...

    def stop_block(self, block: Block) -> bytes:
        """Completes a block."""
        ...

    def end_reply(self, blocks: Sequence[Block]) -> bytes: ...

    def error_event(self, error: s.HttpError, request_id: str) -> bytes:
        """Encodes an error after the response has started."""
        ...

    def full_response(self, blocks: Sequence[Block]) -> bytes:
        """Encodes the whole reply, for a request without streaming."""
        ...


@dataclass(frozen=True, slots=True)
class WireFormat:
    call_prefix: str
    """Prefix of tool call ids."""
    find_fault: Callable[[JsonObject], str | None]
    """Returns the error message for a request whose conversation cannot be read, or None."""
    read_conversation: Callable[[JsonObject], Sequence[ConversationMessage]]
    encoder: Callable[[ReplyEnvelope], ReplyEncoder]
    error_body: Callable[[s.HttpError, str], JsonObject]
    """Returns the body of an error response, for an error and a request id."""
    error_headers: Callable[[s.HttpError], Mapping[str, str]] = lambda _: {}
    is_streamed: Callable[[str, JsonObject], bool] = lambda _, body: bool(body.get("stream"))
    """Whether the request with this path and body asks for a streamed reply."""
    stream_type: str = "text/event-stream; charset=utf-8"


def new_id(prefix: str, *, separator: str = "_") -> str:
    return f"{prefix}{separator}01{secrets.token_hex(11)}"


def text_of(content: Json, *block_types: str) -> str:
    """Returns a string itself, or the joined text of the blocks of these types in a list."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(b.get("text")) for b in blocks if isinstance(b, dict) and b.get("type") in block_types)


def role_of(name: Json) -> Role:
    """Maps a role name. OpenAI's newer models use `developer` for system. Unknown roles count as user."""
    match name:
        case "assistant" | "system" | "tool":
            return name
        case "developer":
            return "system"
        case _:
            return "user"
