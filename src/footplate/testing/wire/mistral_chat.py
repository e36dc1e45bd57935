"""Parses requests and encodes replies in the format of Mistral's chat API: like OpenAI's, with thinking as content.

All tool calls of a reply are in its last chunk, as Mistral sends them. The format has no event for an error: after one,
the response just ends. It has no finish reason for a refusal either.
"""

import time
from collections.abc import Sequence
from typing import Final

import orjson

from footplate.domain.json import JsonObject
from footplate.testing import reply_steps as s
from footplate.testing.wire import openai_chat, openai_common
from footplate.testing.wire.wire_format_interface import (
    Block,
    ConversationMessage,
    ReplyEnvelope,
    WireFormat,
    new_id,
)

_FINISH_REASONS: Final[dict[s.StopReason, str]] = {"max_tokens": "length", "tool_use": "tool_calls"}
_FILLER: Final = ConversationMessage("assistant", "OK")
_DONE: Final = b"data: [DONE]\n\n"


class MistralEncoder:
    def __init__(self, envelope: ReplyEnvelope) -> None:
        self._envelope = envelope
        self._finish_reason = _FINISH_REASONS.get(envelope.stop_reason, "stop")
        self._head: dict[str, object] = {
            "id": new_id("cmpl", separator="-"),
            "created": int(time.time()),
            "model": envelope.model,
        }
        self._step: s.Content | None = None

    def start_reply(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def start_block(self, step: s.Content) -> bytes:
        self._step = step
        return b""

    def delta(self, text: str) -> bytes:
        if isinstance(self._step, s.Tool):
            return b""
        return self._chunk({"content": [_thought(text)] if isinstance(self._step, s.Thinking) else text})

    def stop_block(self, block: Block) -> bytes:  # noqa: ARG002 - this format does not mark the end of a block
        return b""

    def end_reply(self, blocks: Sequence[Block]) -> bytes:
        calls = _calls(blocks)
        delta: dict[str, object] = {"content": "", "tool_calls": calls} if calls else {"content": ""}
        return self._chunk(delta, is_last=True) + _DONE

    def error_event(self, error: s.HttpError, request_id: str) -> bytes:  # noqa: ARG002 - this format has no such event
        return b""

    def full_response(self, blocks: Sequence[Block]) -> bytes:
        thoughts = [_thought(block.text) for block in blocks if isinstance(block.step, s.Thinking)]
        text = "".join(block.text for block in blocks if isinstance(block.step, s.Text | s.Stamps))
        content = [*thoughts, {"type": "text", "text": text}] if thoughts else text
        message = {"role": "assistant", "content": content, "tool_calls": _calls(blocks) or None}
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason}
        return orjson.dumps({**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage()})

    def _chunk(self, delta: dict[str, object], *, is_last: bool = False) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": self._finish_reason if is_last else None}
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
        return _frame({**chunk, "usage": self._usage()} if is_last else chunk)

    def _usage(self) -> dict[str, object]:
        tokens = self._envelope.usage
        return {
            "prompt_tokens": openai_common.input_tokens(tokens),
            "completion_tokens": tokens.output_tokens,
            "total_tokens": openai_common.total_tokens(tokens),
            "prompt_tokens_details": {"cached_tokens": tokens.cache_read_input_tokens},
        }


def read_conversation(body: JsonObject) -> list[ConversationMessage]:
    """Reads the conversation without the messages that the client adds between a tool result and a user message."""
    found = openai_chat.read_conversation(body)
    return [
        message
        for index, message in enumerate(found)
        if not (message == _FILLER and [one.role for one in found[index - 1 : index + 2 : 2]] == ["tool", "user"])
    ]


def error_body(error: s.HttpError, request_id: str) -> JsonObject:  # noqa: ARG001 - the request id is only in a header
    kind = error.type or s.ERROR_TYPES.get(error.http_error, "internal_server_error")
    return {"object": "error", "message": error.message, "type": kind, "param": None, "code": None}


def _thought(text: str) -> dict[str, object]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _calls(blocks: Sequence[Block]) -> list[dict[str, object]]:
    steps = [block.step for block in blocks if isinstance(block.step, s.Tool)]
    return [
        {
            "id": step.id,
            "type": "function",
            "function": {"name": step.tool, "arguments": orjson.dumps(step.input).decode()},
            "index": index,
        }
        for index, step in enumerate(steps)
    ]


def _frame(data: object) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


FORMAT: Final = WireFormat(
    call_prefix="call",
    find_fault=openai_chat.find_fault,
    read_conversation=read_conversation,
    encoder=MistralEncoder,
    error_body=error_body,
)
