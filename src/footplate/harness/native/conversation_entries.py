"""Converts entries of the conversation to messages of pydantic-ai, and back.

An entry is a prompt, a model response or a tool result. Entries are stored in the order in which they are committed. A
call that waits for approval, for example, has its result after the results of later calls. Model APIs require all
results directly after the response, before the user's messages. This module also sorts the results in the order of
their calls. A running turn and a resumed turn use the same code, so the model receives the same messages after a crash.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from footplate.domain.errors import ModelRefused
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.harness import Entry
from footplate.harness import approvals
from footplate.harness.approvals import ApprovalLedger
from footplate.harness.native import content_blocks, thread_entries
from footplate.harness.native.content_blocks import SpecialContent
from footplate.harness.native.requests.encoded_message_cache import MessagePrefix
from footplate.harness.native.thread_entries import ThreadLedger

REQUEST: Final = "request"
RESPONSE: Final = "response"
TOOL_RETURN: Final = "tool_return"
PROMPT: Final = "prompt"
"""The `input` of a turn's own prompt. A message that joins a running turn has its event id there."""

_KINDS: Final = frozenset({REQUEST, RESPONSE, TOOL_RETURN})
_NOT_STORED: Final = ("timestamp", "usage", "provider_url", "run_id", "conversation_id")
"""Fields that are neither sent to a model nor needed to rebuild a request. Usage is logged separately."""


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """A parsed entry."""

    kind: str
    message: ModelMessage
    turn_id: str
    input: str | None = None
    interrupted: bool = False


class Conversation:
    """The entries so far, and the messages that are sent to a model for them."""

    def __init__(self, history: Sequence[Entry] = ()) -> None:
        self.entries: list[Entry] = []
        """The entries that everything else here is derived from."""
        self.lines: list[ConversationLine] = []
        self.messages: list[ModelMessage] = []
        self.prefix = MessagePrefix()
        """The encoded older messages."""
        self.approvals = ApprovalLedger()
        """For the last response's calls only, because some models reuse call ids in their next response."""
        self.threads = ThreadLedger()
        """The threads of subagents. Their entries are not part of this conversation."""
        self._special_content: set[SpecialContent] = set()
        self._order: dict[str, int] = {}
        self._request: list[ModelRequestPart] = []
        """The parts of the last request. Extended in place, because ten thousand messages may join one turn."""
        self.add_entries(history)

    def add_entries(self, entries: Sequence[Entry]) -> None:
        for line in _parse(entries):
            self.lines.append(line)
            self._add_message(line)
        for entry in entries:
            if entry.kind == RESPONSE:
                self.approvals.clear()
            elif entry.kind == approvals.MARK:
                self.approvals.add_mark(entry)
            elif entry.kind == thread_entries.THREAD:
                self.threads.add_entry(entry)
        self.entries.extend(entries)

    def lines_of_turn(self, turn_id: str) -> list[ConversationLine]:
        """The lines of the newest turn. They are at the end, so older lines are not scanned."""
        own = list(takewhile(lambda line: line.turn_id == turn_id, reversed(self.lines)))
        return own[::-1]

    def open_calls(self) -> list[ToolCallPart]:
        """The calls of the last response that have no result."""
        response = next((m for m in reversed(self.messages) if isinstance(m, ModelResponse)), None)
        if response is None:
            return []
        last = self.messages[-1]
        returned_ids = {part.tool_call_id for part in last.parts if isinstance(part, ToolReturnPart)}
        return [call for call in response.tool_calls if call.tool_call_id not in returned_ids]

    def check_content(self, model: str, provider: str) -> None:
        """Raise `ModelRefused` if the model does not accept content that began with another model. pydantic-ai would
        fetch URLs in the worker, and report audio or video as a bug.
        """
        for content in self._special_content:
            if not content.is_accepted_by(provider):
                raise ModelRefused(
                    f"The conversation has {content.description}, which the model {model!r} does not accept.",
                    help_text="Use the earlier model, or fork the session before the message that has it.",
                )

    def _add_message(self, line: ConversationLine) -> None:
        message = line.message
        if isinstance(message, ModelResponse):
            self._order = {call.tool_call_id: index for index, call in enumerate(message.tool_calls)}
            self.messages.append(message)
            return
        if not self.messages or isinstance(self.messages[-1], ModelResponse):
            self._request = []
            self.messages.append(ModelRequest(parts=self._request))
        for part in message.parts:
            self._special_content |= content_blocks.find_special_content(part)
            insort(self._request, part, key=self._rank)

    def _rank(self, part: ModelRequestPart) -> int:
        """Sorts results first, in the order of their calls: providers reject anything between a call and its result."""
        last = len(self._order)
        return self._order.get(part.tool_call_id, last) if isinstance(part, ToolReturnPart) else last


def prompt_entry(turn_id: str, blocks: Sequence[Json], *, source: str = PROMPT) -> Entry:
    request = ModelRequest(parts=[UserPromptPart(content_blocks.to_model_content(blocks))])
    return Entry(REQUEST, {"turn_id": turn_id, "input": source, "message": _dump(request)})


def response_entry(turn_id: str, message: ModelResponse) -> Entry:
    return Entry(RESPONSE, {"turn_id": turn_id, "message": _dump(message)})


def tool_return_entry(turn_id: str, call: ToolCallPart, blocks: Sequence[Json], *, is_error: bool) -> Entry:
    part = ToolReturnPart(
        call.tool_name,
        content_blocks.to_model_content(blocks),
        call.tool_call_id,
        outcome="failed" if is_error else "success",
    )
    return Entry(TOOL_RETURN, {"turn_id": turn_id, "message": _dump(ModelRequest(parts=[part]))})


def mark_interrupted(entries: Sequence[Entry]) -> list[Entry]:
    """Marks the last entry as interrupted by the user, so that a restart does not continue the turn."""
    if not entries:
        return []
    return [*entries[:-1], replace(entries[-1], body={**entries[-1].body, "interrupted": True})]


def _parse(entries: Sequence[Entry]) -> list[ConversationLine]:
    """Parses this harness's entries. Entries from before the session changed its harness are skipped."""
    own_entries = [entry for entry in entries if entry.kind in _KINDS and "message" in entry.body]
    messages = ModelMessagesTypeAdapter.validate_python([entry.body["message"] for entry in own_entries])
    return [_to_line(entry, message) for entry, message in zip(own_entries, messages, strict=True)]


def _to_line(entry: Entry, message: ModelMessage) -> ConversationLine:
    source = entry.body.get("input")
    return ConversationLine(
        kind=entry.kind,
        message=message,
        turn_id=str(entry.body.get("turn_id") or ""),
        input=source if isinstance(source, str) else None,
        interrupted=bool(entry.body.get("interrupted")),
    )


def _dump(message: ModelMessage) -> JsonObject:
    dumped: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python([message], mode="json", exclude_none=True)
    body = _without_unstored(dumped[0])
    body["parts"] = [_without_unstored(part) for part in body["parts"]]
    return body


def _without_unstored(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in _NOT_STORED}
