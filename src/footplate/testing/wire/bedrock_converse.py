"""Parses requests and encodes replies in the format of Amazon Bedrock's Converse API: binary event-stream messages.

A message is a prelude with its lengths, headers, a JSON payload, and a checksum. The names of errors are in a header.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Final

import orjson

from footplate.domain.json import Json, JsonObject, as_objects
from footplate.testing import reply_steps as s
from footplate.testing.wire import openai_common
from footplate.testing.wire.wire_format_interface import (
    Block,
    ConversationMessage,
    ReplyEnvelope,
    WireFormat,
    role_of,
)

STREAM_SUFFIX: Final = "/converse-stream"
_STRING_HEADER: Final = 7
_STOP_REASONS: Final[dict[s.StopReason, str]] = {"pause_turn": "end_turn", "refusal": "content_filtered"}
_ERRORS: Final = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
    529: "ServiceUnavailableException",
}


class ConverseEncoder:
    def __init__(self, envelope: ReplyEnvelope) -> None:
        self._envelope = envelope
        self._index = -1
        self._step: s.Content | None = None

    def start_reply(self) -> bytes:
        return encode_event("messageStart", {"role": "assistant"})

    def start_block(self, step: s.Content) -> bytes:
        self._index += 1
        self._step = step
        if not isinstance(step, s.Tool):
            return b""
        start = {"toolUse": {"toolUseId": step.id, "name": step.tool}}
        return encode_event("contentBlockStart", {"contentBlockIndex": self._index, "start": start})

    def delta(self, text: str) -> bytes:
        if isinstance(self._step, s.Tool):
            return self._delta({"toolUse": {"input": text}})
        return self._delta(
            {"reasoningContent": {"text": text}} if isinstance(self._step, s.Thinking) else {"text": text}
        )

    def stop_block(self, block: Block) -> bytes:
        end = encode_event("contentBlockStop", {"contentBlockIndex": self._index})
        if isinstance(block.step, s.Thinking):
            return self._delta({"reasoningContent": {"signature": block.step.signature}}) + end
        return end

    def end_reply(self, blocks: Sequence[Block]) -> bytes:  # noqa: ARG002 - this format does not repeat the content
        metadata = {"usage": self._usage(), "metrics": {"latencyMs": 1}}
        return encode_event("messageStop", {"stopReason": self._stop_reason}) + encode_event("metadata", metadata)

    def error_event(self, error: s.HttpError, request_id: str) -> bytes:
        name = error_name(error)
        headers = {":message-type": "exception", ":exception-type": name[0].lower() + name[1:]}
        return encode_message(headers, error_body(error, request_id))

    def full_response(self, blocks: Sequence[Block]) -> bytes:
        message = {"role": "assistant", "content": [_content(block) for block in blocks]}
        return orjson.dumps(
            {
                "output": {"message": message},
                "stopReason": self._stop_reason,
                "usage": self._usage(),
                "metrics": {"latencyMs": 1},
            }
        )

    @property
    def _stop_reason(self) -> str:
        return _STOP_REASONS.get(self._envelope.stop_reason, self._envelope.stop_reason)

    def _delta(self, delta: dict[str, object]) -> bytes:
        return encode_event("contentBlockDelta", {"contentBlockIndex": self._index, "delta": delta})

    def _usage(self) -> dict[str, int]:
        tokens = self._envelope.usage
        return {
            "inputTokens": tokens.input_tokens,
            "outputTokens": tokens.output_tokens,
            "totalTokens": openai_common.total_tokens(tokens),
            "cacheReadInputTokens": tokens.cache_read_input_tokens,
            "cacheWriteInputTokens": tokens.cache_creation_input_tokens,
        }


def encode_event(kind: str, payload: object) -> bytes:
    return encode_message({":message-type": "event", ":event-type": kind}, payload)


def encode_message(headers: dict[str, str], payload: object) -> bytes:
    """Encodes a message of the format `application/vnd.amazon.eventstream`."""
    encoded = b"".join(_header(name, value) for name, value in {**headers, ":content-type": "application/json"}.items())
    body = orjson.dumps(payload)
    lengths = struct.pack(">II", len(encoded) + len(body) + 16, len(encoded))
    start = lengths + struct.pack(">I", zlib.crc32(lengths)) + encoded + body
    return start + struct.pack(">I", zlib.crc32(start))


def read_conversation(body: JsonObject) -> list[ConversationMessage]:
    system = ConversationMessage("system", _text_of(body.get("system")))
    return [system, *(_read_message(message) for message in as_objects(body.get("messages")))]


def find_fault(body: JsonObject) -> str | None:
    return None if isinstance(body.get("messages"), list) else "messages is required"


def error_body(error: s.HttpError, request_id: str) -> JsonObject:  # noqa: ARG001 - the request id is only in a header
    return {"message": error.message}


def error_name(error: s.HttpError) -> str:
    return error.type or _ERRORS.get(error.http_error, "InternalServerException")


def _read_message(message: JsonObject) -> ConversationMessage:
    role = role_of(message.get("role"))
    if role == "user" and any("toolResult" in block for block in as_objects(message.get("content"))):
        return ConversationMessage("tool", "")
    return ConversationMessage(role, _text_of(message.get("content")))


def _text_of(content: Json) -> str:
    return "\n".join(str(block["text"]) for block in as_objects(content) if "text" in block)


def _content(block: Block) -> dict[str, object]:
    step = block.step
    if isinstance(step, s.Tool):
        return {"toolUse": {"toolUseId": step.id, "name": step.tool, "input": step.input}}
    if isinstance(step, s.Thinking):
        return {"reasoningContent": {"reasoningText": {"text": block.text, "signature": step.signature}}}
    return {"text": block.text}


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING_HEADER, len(text)) + text


FORMAT: Final = WireFormat(
    call_prefix="tooluse",
    find_fault=find_fault,
    read_conversation=read_conversation,
    encoder=ConverseEncoder,
    error_body=error_body,
    error_headers=lambda error: {"x-amzn-errortype": error_name(error)},
    is_streamed=lambda path, _: path.endswith(STREAM_SUFFIX),
    stream_type="application/vnd.amazon.eventstream",
)
