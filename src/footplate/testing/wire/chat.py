"""OpenAI's Chat Completions API: one message, streamed as deltas of its fields.

A message has a single text, so adjacent text steps are joined. Thinking is sent as `reasoning_content`, as compatible
servers do; OpenAI itself does not send it.
"""

import time
from collections.abc import Sequence
from typing import Final

import orjson

from footplate.domain.json import JsonObject
from footplate.testing import steps as s
from footplate.testing.wire import openai
from footplate.testing.wire.format import Block, Envelope, Format, Said, new_id, role_of, text_of

_FINISH_REASONS: Final[dict[s.StopReason, str]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_DONE: Final = b"data: [DONE]\n\n"


class ChatEncoder:
    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._finish_reason = _FINISH_REASONS[envelope.stop_reason]
        self._head: dict[str, object] = {
            "id": new_id("chatcmpl", separator="-"),
            "created": int(time.time()),
            "model": envelope.model,
        }
        options = envelope.request.get("stream_options")
        self._tells_usage = isinstance(options, dict) and options.get("include_usage") is True
        self._calls = -1
        self._before = self._after = b""

    def opening(self) -> bytes:
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def start(self, step: s.Content) -> bytes:
        if isinstance(step, s.Tool):
            self._calls += 1
            self._split({"tool_calls": [{"index": self._calls, "function": {"arguments": _HERE}}]})
            function = {"name": step.tool, "arguments": ""}
            call = {"index": self._calls, "id": step.id, "type": "function", "function": function}
            return self._chunk({"tool_calls": [call]})
        self._split({"reasoning_content" if isinstance(step, s.Thinking) else "content": _HERE})
        return b""

    def delta(self, text: str) -> bytes:
        return self._before + orjson.dumps(text) + self._after

    def stop(self, block: Block) -> bytes:  # noqa: ARG002 - this format does not mark the end of a block
        return b""

    def end(self, blocks: Sequence[Block]) -> bytes:  # noqa: ARG002 - this format does not repeat the content
        last = self._chunk({}, finish_reason=self._finish_reason)
        if not self._tells_usage:
            return last + _DONE
        usage = {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": self._usage()}
        return last + _frame(usage) + _DONE

    def error(self, error: s.HttpError, request_id: str) -> bytes:
        return _frame(openai.error_body(error, request_id))

    def whole(self, blocks: Sequence[Block]) -> bytes:
        choice = {"index": 0, "message": _message(blocks), "logprobs": None, "finish_reason": self._finish_reason}
        return orjson.dumps({**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage()})

    def _split(self, delta: dict[str, object]) -> None:
        """Encodes a delta once and splits it at the position of the text."""
        self._before, self._after = self._chunk(delta).split(orjson.dumps(_HERE))

    def _chunk(self, delta: dict[str, object], *, finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
        return _frame({**chunk, "usage": None} if self._tells_usage else chunk)

    def _usage(self) -> dict[str, object]:
        tokens = self._envelope.usage
        return {
            "prompt_tokens": openai.input_tokens(tokens),
            "completion_tokens": tokens.output_tokens,
            "total_tokens": openai.total_tokens(tokens),
            "prompt_tokens_details": openai.input_details(tokens),
            "completion_tokens_details": {"reasoning_tokens": 0},
        }


_HERE: Final = "\x00text\x00"
"""Placeholder for the text in the frame of a delta. No model or tool name can contain it."""


def said(body: JsonObject) -> list[Said]:
    messages = body.get("messages")
    return [_said(message) for message in (messages if isinstance(messages, list) else []) if isinstance(message, dict)]


def fault(body: JsonObject) -> str | None:
    return None if isinstance(body.get("messages"), list) else "Missing required parameter: 'messages'."


def _said(message: JsonObject) -> Said:
    role = role_of(message.get("role"))
    return Said(role, "" if role == "tool" else text_of(message.get("content"), "text"))


def _message(blocks: Sequence[Block]) -> dict[str, object]:
    thoughts = [block.text for block in blocks if isinstance(block.step, s.Thinking)]
    words = [block.text for block in blocks if isinstance(block.step, s.Text | s.Stamps)]
    calls = [
        {"id": block.step.id, "type": "function", "function": {"name": block.step.tool, "arguments": block.text}}
        for block in blocks
        if isinstance(block.step, s.Tool)
    ]
    message: dict[str, object] = {"role": "assistant", "content": "".join(words) if words else None, "refusal": None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _frame(data: object) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


FORMAT: Final = Format(call_prefix="call", fault=fault, said=said, encoder=ChatEncoder, error_body=openai.error_body)
