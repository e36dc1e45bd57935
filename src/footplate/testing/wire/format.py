"""What a wire format has to offer: reading what was said, and an encoder for one reply."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from footplate.domain.json import Json, JsonObject
from footplate.testing import steps as s
from footplate.testing.steps import Step

Role = Literal["system", "user", "assistant", "tool"]


class Said(NamedTuple):
    """One message of the conversation so far. The text of a tool's result is left out."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is the same all through one reply."""

    model: str
    usage: s.Tokens
    stop_reason: s.StopReason
    request: JsonObject

    @classmethod
    def of(cls, steps: Sequence[Step], request: JsonObject) -> "Envelope":
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
    """A step of content and as much of it as was sent: of a tool, its input as JSON."""

    step: s.Content
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Encoder(Protocol):
    """One reply as frames, each method called when its moment has come; a new one for every reply."""

    def opening(self) -> bytes: ...

    def start(self, step: s.Content) -> bytes:
        """The block of this step begins."""
        ...

    def delta(self, text: str) -> bytes:
        """The next piece of the block that was started last. The hot path."""
        ...

    def stop(self, block: Block) -> bytes:
        """The block is complete."""
        ...

    def end(self, blocks: Sequence[Block]) -> bytes: ...

    def error(self, error: s.HttpError, request_id: str) -> bytes:
        """An error after the answer has begun."""
        ...

    def whole(self, blocks: Sequence[Block]) -> bytes:
        """The same reply in one piece, for a request that does not stream."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    call_prefix: str
    """Of the ids of tool calls."""
    fault: Callable[[JsonObject], str | None]
    """What is wrong with a request, if its conversation cannot be read."""
    said: Callable[[JsonObject], Sequence[Said]]
    encoder: Callable[[Envelope], Encoder]
    error_body: Callable[[s.HttpError, str], JsonObject]
    """An error's body before the answer has begun, for the error and the request's id."""


def new_id(prefix: str, *, separator: str = "_") -> str:
    return f"{prefix}{separator}01{secrets.token_hex(11)}"


def text_of(content: Json, *block_types: str) -> str:
    """The text of a string or of those blocks in a list."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(b.get("text")) for b in blocks if isinstance(b, dict) and b.get("type") in block_types)


def role_of(name: Json) -> Role:
    """OpenAI's newer models call the system `developer`. What nobody knows is what a person might have said."""
    match name:
        case "assistant" | "system" | "tool":
            return name
        case "developer":
            return "system"
        case _:
            return "user"
