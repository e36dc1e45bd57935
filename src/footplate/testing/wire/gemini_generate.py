"""Parses requests and encodes replies in the format of the Gemini API: chunks of one candidate, each with its parts.

A tool call arrives as a whole, so its chunk is sent when its step is complete.
"""

from collections.abc import Sequence
from typing import Final

import orjson

from footplate.domain.json import Json, JsonObject, as_object, as_objects
from footplate.testing import reply_steps as s
from footplate.testing.wire import openai_common
from footplate.testing.wire.wire_format_interface import (
    Block,
    ConversationMessage,
    ReplyEnvelope,
    WireFormat,
    new_id,
)

STREAM_METHOD: Final = ":streamGenerateContent"
_FINISH_REASONS: Final[dict[s.StopReason, str]] = {"max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}
_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GeminiEncoder:
    def __init__(self, envelope: ReplyEnvelope) -> None:
        self._envelope = envelope
        self._response_id = new_id("resp")
        self._is_thought = False

    def start_reply(self) -> bytes:
        return b""

    def start_block(self, step: s.Content) -> bytes:
        self._is_thought = isinstance(step, s.Thinking)
        self._is_call = isinstance(step, s.Tool)
        return b""

    def delta(self, text: str) -> bytes:
        if self._is_call:
            return b""
        return self._chunk([{"text": text, "thought": True} if self._is_thought else {"text": text}])

    def stop_block(self, block: Block) -> bytes:
        return self._chunk([_part(block)]) if isinstance(block.step, s.Tool) else b""

    def end_reply(self, blocks: Sequence[Block]) -> bytes:  # noqa: ARG002 - this format does not repeat the content
        return self._chunk([{"text": ""}], is_last=True)

    def error_event(self, error: s.HttpError, request_id: str) -> bytes:
        return _frame(error_body(error, request_id))

    def full_response(self, blocks: Sequence[Block]) -> bytes:
        return orjson.dumps(self._response([_part(block) for block in blocks], is_last=True))

    def _chunk(self, parts: Sequence[object], *, is_last: bool = False) -> bytes:
        return _frame(self._response(parts, is_last=is_last))

    def _response(self, parts: Sequence[object], *, is_last: bool) -> dict[str, object]:
        candidate: dict[str, object] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if is_last:
            candidate["finishReason"] = _FINISH_REASONS.get(self._envelope.stop_reason, "STOP")
        return {
            "candidates": [candidate],
            "usageMetadata": self._usage(is_last=is_last),
            "responseId": self._response_id,
        }

    def _usage(self, *, is_last: bool) -> dict[str, int]:
        tokens = self._envelope.usage
        usage = {"promptTokenCount": openai_common.input_tokens(tokens)}
        if tokens.cache_read_input_tokens:
            usage["cachedContentTokenCount"] = tokens.cache_read_input_tokens
        if is_last:
            usage["candidatesTokenCount"] = tokens.output_tokens
        return {**usage, "totalTokenCount": sum(usage.values()) - tokens.cache_read_input_tokens}


def read_conversation(body: JsonObject) -> list[ConversationMessage]:
    system = ConversationMessage("system", _text_of(as_object(body.get("systemInstruction")).get("parts")))
    return [system, *(_read_content(content) for content in as_objects(body.get("contents")))]


def find_fault(body: JsonObject) -> str | None:
    return None if isinstance(body.get("contents"), list) else "contents is not specified"


def error_body(error: s.HttpError, request_id: str) -> JsonObject:  # noqa: ARG001 - the request id is only in a header
    status = error.type or _STATUSES.get(error.http_error, "UNKNOWN")
    return {"error": {"code": error.http_error, "message": error.message, "status": status}}


def _read_content(content: JsonObject) -> ConversationMessage:
    if content.get("role") == "model":
        return ConversationMessage("assistant", _text_of(content.get("parts")))
    is_result = any("functionResponse" in part for part in as_objects(content.get("parts")))
    return ConversationMessage("tool", "") if is_result else ConversationMessage("user", _text_of(content.get("parts")))


def _text_of(parts: Json) -> str:
    return "\n".join(str(part["text"]) for part in as_objects(parts) if "text" in part and not part.get("thought"))


def _part(block: Block) -> dict[str, object]:
    if isinstance(block.step, s.Tool):
        return {"functionCall": {"id": block.step.id, "name": block.step.tool, "args": block.step.input}}
    return {"text": block.text, "thought": True} if isinstance(block.step, s.Thinking) else {"text": block.text}


def _frame(data: object) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\r\n\r\n"


FORMAT: Final = WireFormat(
    call_prefix="call",
    find_fault=find_fault,
    read_conversation=read_conversation,
    encoder=GeminiEncoder,
    error_body=error_body,
    is_streamed=lambda path, _: path.endswith(STREAM_METHOD),
)
