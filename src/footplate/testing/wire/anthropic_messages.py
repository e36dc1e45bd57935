"""Parses requests and encodes replies in the format of Anthropic's Messages API: a stream of indexed content blocks."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import orjson

from footplate.domain.json import JsonObject
from footplate.testing import reply_steps as s
from footplate.testing.wire.wire_format_interface import (
    Block,
    ConversationMessage,
    ReplyEnvelope,
    WireFormat,
    new_id,
    role_of,
    text_of,
)

_PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'
_MESSAGE_STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


class MessagesEncoder:
    def __init__(self, envelope: ReplyEnvelope) -> None:
        self._envelope = envelope
        self._head: dict[str, object] = {
            "id": new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": envelope.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        self._index = -1
        self._delta_prefix = b""

    def start_reply(self) -> bytes:
        usage = {**asdict(self._envelope.usage), "output_tokens": 1}
        return _frame("message_start", {"message": {**self._head, "usage": usage}}) + _PING

    def start_block(self, step: s.Content) -> bytes:
        self._index += 1
        if isinstance(step, s.Tool):
            block: dict[str, object] = {"type": "tool_use", "id": step.id, "name": step.tool, "input": {}}
            self._delta_prefix = self._encode_delta_prefix("input_json_delta", "partial_json")
        elif isinstance(step, s.Thinking):
            block = {"type": "thinking", "thinking": "", "signature": ""}
            self._delta_prefix = self._encode_delta_prefix("thinking_delta", "thinking")
        else:
            block = {"type": "text", "text": ""}
            self._delta_prefix = self._encode_delta_prefix("text_delta", "text")
        return _frame("content_block_start", {"index": self._index, "content_block": block})

    def delta(self, text: str) -> bytes:
        return self._delta_prefix + orjson.dumps(text) + b"}}\n\n"

    def stop_block(self, block: Block) -> bytes:
        end = _frame("content_block_stop", {"index": self._index})
        if isinstance(block.step, s.Thinking):
            return (
                self._encode_delta_prefix("signature_delta", "signature")
                + orjson.dumps(block.step.signature)
                + b"}}\n\n"
                + end
            )
        return end

    def end_reply(self, blocks: Sequence[Block]) -> bytes:  # noqa: ARG002 - the end of a message does not repeat its content
        delta = {"stop_reason": self._envelope.stop_reason, "stop_sequence": None}
        return _frame("message_delta", {"delta": delta, "usage": asdict(self._envelope.usage)}) + _MESSAGE_STOP

    def error_event(self, error: s.HttpError, request_id: str) -> bytes:
        return b"event: error\ndata: " + orjson.dumps(error_body(error, request_id)) + b"\n\n"

    def full_response(self, blocks: Sequence[Block]) -> bytes:
        return orjson.dumps(
            {
                **self._head,
                "content": [_encode_block(block) for block in blocks],
                "stop_reason": self._envelope.stop_reason,
                "usage": asdict(self._envelope.usage),
            }
        )

    def _encode_delta_prefix(self, delta_type: str, key: str) -> bytes:
        """Encodes the part of a delta before its text, once per block."""
        data = f'{{"type":"content_block_delta","index":{self._index},"delta":{{"type":"{delta_type}","{key}":'
        return b"event: content_block_delta\ndata: " + data.encode()


def read_conversation(body: JsonObject) -> list[ConversationMessage]:
    messages = body.get("messages")
    system = ConversationMessage("system", text_of(body.get("system"), "text"))
    return [
        system,
        *(
            ConversationMessage(role_of(message.get("role")), text_of(message.get("content"), "text"))
            for message in (messages if isinstance(messages, list) else [])
            if isinstance(message, dict)
        ),
    ]


def find_fault(body: JsonObject) -> str | None:
    return None if isinstance(body.get("messages"), list) else "messages: Field required"


def error_body(error: s.HttpError, request_id: str) -> JsonObject:
    error_type = error.type or s.ERROR_TYPES.get(error.http_error, "api_error")
    return {"type": "error", "error": {"type": error_type, "message": error.message}, "request_id": request_id}


def _encode_block(block: Block) -> dict[str, object]:
    step = block.step
    if isinstance(step, s.Thinking):
        return {"type": "thinking", "thinking": block.text, "signature": step.signature}
    if isinstance(step, s.Tool):
        return {"type": "tool_use", "id": step.id, "name": step.tool, "input": step.input}
    return {"type": "text", "text": block.text}


def _frame(event: str, data: dict[str, object]) -> bytes:
    return f"event: {event}\ndata: ".encode() + orjson.dumps({"type": event, **data}) + b"\n\n"


FORMAT: Final = WireFormat(
    call_prefix="toolu",
    find_fault=find_fault,
    read_conversation=read_conversation,
    encoder=MessagesEncoder,
    error_body=error_body,
)
