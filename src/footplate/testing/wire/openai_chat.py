"""Parses requests and encodes replies in the format of OpenAI's Chat Completions API: one message, streamed as deltas.

A message has a single text, so adjacent text steps are joined. Thinking is sent as `reasoning_content`, like other
servers with this API do. OpenAI itself does not send it.
"""

import time
from collections.abc import Sequence
from typing import Final

import orjson

from footplate.domain.json import JsonObject
from footplate.testing import reply_steps as s
from footplate.testing.wire import openai_common
from footplate.testing.wire.wire_format_interface import (
    Block,
    ConversationMessage,
    ReplyEnvelope,
    WireFormat,
    new_id,
    role_of,
    text_of,
)

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
    def __init__(self, envelope: ReplyEnvelope) -> None:
        self._envelope = envelope
        self._finish_reason = _FINISH_REASONS[envelope.stop_reason]
        self._head: dict[str, object] = {
            "id": new_id("chatcmpl", separator="-"),
            "created": int(time.time()),
            "model": envelope.model,
        }
        options = envelope.request.get("stream_options")
        self._includes_usage = isinstance(options, dict) and options.get("include_usage") is True
        self._call_index = -1
        self._delta_prefix = self._delta_suffix = b""

    def start_reply(self) -> bytes:
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def start_block(self, step: s.Content) -> bytes:
        if isinstance(step, s.Tool):
            self._call_index += 1
            self._prepare_delta(
                {"tool_calls": [{"index": self._call_index, "function": {"arguments": _TEXT_PLACEHOLDER}}]}
            )
            function = {"name": step.tool, "arguments": ""}
            call = {"index": self._call_index, "id": step.id, "type": "function", "function": function}
            return self._chunk({"tool_calls": [call]})
        self._prepare_delta({"reasoning_content" if isinstance(step, s.Thinking) else "content": _TEXT_PLACEHOLDER})
        return b""

    def delta(self, text: str) -> bytes:
        return self._delta_prefix + orjson.dumps(text) + self._delta_suffix

    def stop_block(self, block: Block) -> bytes:  # noqa: ARG002 - this format does not mark the end of a block
        return b""

    def end_reply(self, blocks: Sequence[Block]) -> bytes:  # noqa: ARG002 - this format does not repeat the content
        last = self._chunk({}, finish_reason=self._finish_reason)
        if not self._includes_usage:
            return last + _DONE
        usage: dict[str, object] = {
            **self._head,
            "object": "chat.completion.chunk",
            "choices": [],
            "usage": self._usage(),
        }
        return last + _frame(usage) + _DONE

    def error_event(self, error: s.HttpError, request_id: str) -> bytes:
        return _frame(openai_common.error_body(error, request_id))

    def full_response(self, blocks: Sequence[Block]) -> bytes:
        choice = {"index": 0, "message": _message(blocks), "logprobs": None, "finish_reason": self._finish_reason}
        return orjson.dumps({**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage()})

    def _prepare_delta(self, delta: dict[str, object]) -> None:
        """Encodes a delta once and splits it at the position of the text."""
        self._delta_prefix, self._delta_suffix = self._chunk(delta).split(orjson.dumps(_TEXT_PLACEHOLDER))

    def _chunk(self, delta: dict[str, object], *, finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
        return _frame({**chunk, "usage": None} if self._includes_usage else chunk)

    def _usage(self) -> dict[str, object]:
        tokens = self._envelope.usage
        return {
            "prompt_tokens": openai_common.input_tokens(tokens),
            "completion_tokens": tokens.output_tokens,
            "total_tokens": openai_common.total_tokens(tokens),
            "prompt_tokens_details": openai_common.input_details(tokens),
            "completion_tokens_details": {"reasoning_tokens": 0},
        }


_TEXT_PLACEHOLDER: Final = "\x00text\x00"
"""Placeholder for the text in the frame of a delta. No model or tool name can contain it."""


def read_conversation(body: JsonObject) -> list[ConversationMessage]:
    messages = body.get("messages")
    return [
        _read_message(message)
        for message in (messages if isinstance(messages, list) else [])
        if isinstance(message, dict)
    ]


def find_fault(body: JsonObject) -> str | None:
    return None if isinstance(body.get("messages"), list) else "Missing required parameter: 'messages'."


def _read_message(message: JsonObject) -> ConversationMessage:
    role = role_of(message.get("role"))
    return ConversationMessage(role, "" if role == "tool" else text_of(message.get("content"), "text"))


def _message(blocks: Sequence[Block]) -> dict[str, object]:
    thoughts = [block.text for block in blocks if isinstance(block.step, s.Thinking)]
    texts = [block.text for block in blocks if isinstance(block.step, s.Text | s.Stamps)]
    calls = [
        {"id": block.step.id, "type": "function", "function": {"name": block.step.tool, "arguments": block.text}}
        for block in blocks
        if isinstance(block.step, s.Tool)
    ]
    message: dict[str, object] = {"role": "assistant", "content": "".join(texts) if texts else None, "refusal": None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _frame(data: object) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


FORMAT: Final = WireFormat(
    call_prefix="call",
    find_fault=find_fault,
    read_conversation=read_conversation,
    encoder=ChatEncoder,
    error_body=openai_common.error_body,
)
