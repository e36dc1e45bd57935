"""Parses requests and encodes replies in the format of OpenAI's Responses API: numbered events about output items.

The last event contains the whole response. Of the request's fields, a response repeats only those that clients check.
The server stores no conversations, so each request must contain the whole conversation.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from footplate.domain.json import Json, JsonObject
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

_INCOMPLETE: Final[dict[s.StopReason, str]] = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}
_ENCRYPTED: Final = "reasoning.encrypted_content"
_STATEFUL_FIELDS: Final = ("previous_response_id", "conversation")


class ResponsesEncoder:
    def __init__(self, envelope: ReplyEnvelope) -> None:
        self._envelope = envelope
        self._id = new_id("resp")
        self._created_at = int(time.time())
        include = envelope.request.get("include")
        self._includes_signature = isinstance(include, list) and _ENCRYPTED in include
        self._sequence = -1
        self._items: list[str] = []
        self._delta_prefix = b""

    def start_reply(self) -> bytes:
        response = self._response("in_progress", [])
        return self._frame("response.created", response=response) + self._frame(
            "response.in_progress", response=response
        )

    def start_block(self, step: s.Content) -> bytes:
        self._items.append(new_id(_item_prefix(step)))
        empty = self._item(len(self._items) - 1, Block(step), status="in_progress")
        added = self._frame("response.output_item.added", output_index=self._output_index, item=empty)
        if isinstance(step, s.Tool):
            self._delta_prefix = self._encode_delta_prefix("response.function_call_arguments.delta")
            return added
        if isinstance(step, s.Thinking):
            self._delta_prefix = self._encode_delta_prefix(
                "response.reasoning_summary_text.delta", '"summary_index":0,'
            )
            return added + self._item_frame("response.reasoning_summary_part.added", summary_index=0, part=_summary(""))
        self._delta_prefix = self._encode_delta_prefix("response.output_text.delta", '"content_index":0,"logprobs":[],')
        return added + self._item_frame("response.content_part.added", content_index=0, part=_output_text(""))

    def delta(self, text: str) -> bytes:
        self._sequence += 1
        return self._delta_prefix + b'%d,"delta":' % self._sequence + orjson.dumps(text) + b"}\n\n"

    def stop_block(self, block: Block) -> bytes:
        item = self._item(len(self._items) - 1, block, status="completed")
        frames = [
            *self._done_frames(block),
            self._frame("response.output_item.done", output_index=self._output_index, item=item),
        ]
        return b"".join(frames)

    def end_reply(self, blocks: Sequence[Block]) -> bytes:
        response = self._final_response(blocks)
        return self._frame(f"response.{response['status']}", response=response)

    def error_event(self, error: s.HttpError, request_id: str) -> bytes:  # noqa: ARG002 - the request id is only in a header
        details = openai_common.error_object(error)
        return self._frame("error", code=details["code"] or details["type"], message=error.message, param=None)

    def full_response(self, blocks: Sequence[Block]) -> bytes:
        return orjson.dumps(self._final_response(blocks))

    @property
    def _output_index(self) -> int:
        return len(self._items) - 1

    def _done_frames(self, block: Block) -> Iterator[bytes]:
        text = block.text
        if isinstance(block.step, s.Tool):
            yield self._item_frame("response.function_call_arguments.done", arguments=text)
        elif isinstance(block.step, s.Thinking):
            yield self._item_frame("response.reasoning_summary_text.done", summary_index=0, text=text)
            yield self._item_frame("response.reasoning_summary_part.done", summary_index=0, part=_summary(text))
        else:
            yield self._item_frame("response.output_text.done", content_index=0, logprobs=[], text=text)
            yield self._item_frame("response.content_part.done", content_index=0, part=_output_text(text))

    def _encode_delta_prefix(self, event: str, fields: str = "") -> bytes:
        """Encodes the part of a delta before its number and text, once per block."""
        position = f'"item_id":"{self._items[-1]}","output_index":{self._output_index},{fields}'
        return f'event: {event}\ndata: {{"type":"{event}",{position}"sequence_number":'.encode()

    def _item_frame(self, event: str, **data: object) -> bytes:
        return self._frame(event, item_id=self._items[-1], output_index=self._output_index, **data)

    def _frame(self, event: str, **data: object) -> bytes:
        self._sequence += 1
        body = {"type": event, "sequence_number": self._sequence, **data}
        return f"event: {event}\ndata: ".encode() + orjson.dumps(body) + b"\n\n"

    def _final_response(self, blocks: Sequence[Block]) -> dict[str, object]:
        reason = _INCOMPLETE.get(self._envelope.stop_reason)
        output = [self._item(index, block, status="completed") for index, block in enumerate(blocks)]
        return {
            **self._response("incomplete" if reason else "completed", output),
            "incomplete_details": {"reason": reason} if reason else None,
            "usage": self._usage(),
        }

    def _response(self, status: str, output: Sequence[object]) -> dict[str, object]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created_at,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": self._envelope.model,
            "output": output,
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": None,
        }

    def _item(self, index: int, block: Block, *, status: str) -> dict[str, object]:
        step = block.step
        done = status == "completed"
        if isinstance(step, s.Tool):
            call = {"call_id": step.id, "name": step.tool, "arguments": block.text}
            return {"id": self._items[index], "type": "function_call", "status": status, **call}
        if isinstance(step, s.Thinking):
            signature = step.signature if done and self._includes_signature else None
            summary = [_summary(block.text)] if done else []
            return {"id": self._items[index], "type": "reasoning", "summary": summary, "encrypted_content": signature}
        content = [_output_text(block.text)] if done else []
        item = {"id": self._items[index], "type": "message", "status": status}
        return {**item, "role": "assistant", "content": content}

    def _usage(self) -> dict[str, object]:
        tokens = self._envelope.usage
        return {
            "input_tokens": openai_common.input_tokens(tokens),
            "input_tokens_details": openai_common.input_details(tokens),
            "output_tokens": tokens.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": openai_common.total_tokens(tokens),
        }


def read_conversation(body: JsonObject) -> list[ConversationMessage]:
    """Reads the conversation. A reply consists of several consecutive items, which are joined into one message."""
    conversation = [ConversationMessage("system", text_of(body.get("instructions")))]
    for message in _read_items(body.get("input")):
        last = conversation[-1]
        if message.role == last.role == "assistant":
            conversation[-1] = ConversationMessage("assistant", "\n".join(filter(None, (last.text, message.text))))
        else:
            conversation.append(message)
    return conversation


def find_fault(body: JsonObject) -> str | None:
    if not isinstance(body.get("input"), (str, list)):
        return "Missing required parameter: 'input'."
    field = next((name for name in _STATEFUL_FIELDS if body.get(name) is not None), None)
    return f"{field} is not supported: conversations are not stored, so send the whole input." if field else None


def _read_items(given: Json) -> Iterator[ConversationMessage]:
    if isinstance(given, str):
        yield ConversationMessage("user", given)
        return
    for item in given if isinstance(given, list) else []:
        if not isinstance(item, dict):
            continue
        if "role" in item:
            yield ConversationMessage(role_of(item["role"]), text_of(item.get("content"), "input_text", "output_text"))
        else:
            yield ConversationMessage("tool" if str(item.get("type")).endswith("_output") else "assistant", "")


def _item_prefix(step: s.Content) -> str:
    if isinstance(step, s.Tool):
        return "fc"
    return "rs" if isinstance(step, s.Thinking) else "msg"


def _summary(text: str) -> dict[str, object]:
    return {"type": "summary_text", "text": text}


def _output_text(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


FORMAT: Final = WireFormat(
    call_prefix="call",
    find_fault=find_fault,
    read_conversation=read_conversation,
    encoder=ResponsesEncoder,
    error_body=openai_common.error_body,
)
