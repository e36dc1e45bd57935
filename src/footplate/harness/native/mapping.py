"""Conversation entries to and from model messages. Pure.

An entry is what one moment added: a prompt, one response of the model, one tool result. A model wants them in
another shape: after a response with calls, one request that holds a result for each, in the order of the calls, then
what the user said since. Both the running turn and a restart build messages from entries by the same code,
so what the model sees never depends on whether a worker was lost.
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

from footplate.domain.json import Json, JsonObject
from footplate.domain.ports import Entry
from footplate.harness import approvals
from footplate.harness.approvals import Ledger
from footplate.harness.native import content
from footplate.harness.native.prefixes import Prefix

REQUEST: Final = "request"
RESPONSE: Final = "response"
TOOL_RETURN: Final = "tool_return"
PROMPT: Final = "prompt"
"""The `input` of a turn's own prompt; a steering message has its event's id there."""

_KINDS: Final = frozenset({REQUEST, RESPONSE, TOOL_RETURN})
_NOT_STORED: Final = ("timestamp", "usage", "provider_url", "run_id", "conversation_id")
"""Neither sent to a model nor needed to rebuild what is; usage has its own place in the log."""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry, parsed."""

    kind: str
    message: ModelMessage
    turn_id: str
    input: str | None = None
    interrupted: bool = False


class Conversation:
    """The entries so far, and the messages that a model gets for them."""

    def __init__(self, history: Sequence[Entry] = ()) -> None:
        self.entries: list[Entry] = []
        """What all of this was made from."""
        self.lines: list[Line] = []
        self.messages: list[ModelMessage] = []
        self.prefix = Prefix()
        """The older messages, encoded."""
        self.approvals = Ledger()
        """Of the last response's calls: some models use a call's id again in their next one."""
        self._order: dict[str, int] = {}
        self._request: list[ModelRequestPart] = []
        """The parts of the last request. Added to in place: ten thousand messages may join one turn."""
        self.add(history)

    def add(self, entries: Sequence[Entry]) -> None:
        for line in _parse(entries):
            self.lines.append(line)
            self._place(line)
        for entry in entries:
            if entry.kind == RESPONSE:
                self.approvals.clear()
            elif entry.kind == approvals.MARK:
                self.approvals.note(entry)
        self.entries.extend(entries)

    def of_turn(self, turn_id: str) -> list[Line]:
        """The newest turn's lines are the last ones: no need to walk through years of conversation."""
        own = list(takewhile(lambda line: line.turn_id == turn_id, reversed(self.lines)))
        return own[::-1]

    def open_calls(self) -> list[ToolCallPart]:
        """The calls of the last response that have no result."""
        response = next((m for m in reversed(self.messages) if isinstance(m, ModelResponse)), None)
        if response is None:
            return []
        last = self.messages[-1]
        answered = {part.tool_call_id for part in last.parts if isinstance(part, ToolReturnPart)}
        return [call for call in response.tool_calls if call.tool_call_id not in answered]

    def _place(self, line: Line) -> None:
        message = line.message
        if isinstance(message, ModelResponse):
            self._order = {call.tool_call_id: index for index, call in enumerate(message.tool_calls)}
            self.messages.append(message)
            return
        if not self.messages or isinstance(self.messages[-1], ModelResponse):
            self._request = []
            self.messages.append(ModelRequest(parts=self._request))
        for part in message.parts:
            insort(self._request, part, key=self._rank)

    def _rank(self, part: ModelRequestPart) -> int:
        """Results first, in the order of their calls: providers refuse anything between a call and its result."""
        last = len(self._order)
        return self._order.get(part.tool_call_id, last) if isinstance(part, ToolReturnPart) else last


def prompt(turn_id: str, blocks: Sequence[Json], *, source: str = PROMPT) -> Entry:
    request = ModelRequest(parts=[UserPromptPart(content.to_model(blocks))])
    return Entry(REQUEST, {"turn_id": turn_id, "input": source, "message": _dump(request)})


def response(turn_id: str, message: ModelResponse) -> Entry:
    return Entry(RESPONSE, {"turn_id": turn_id, "message": _dump(message)})


def tool_return(turn_id: str, call: ToolCallPart, blocks: Sequence[Json], *, is_error: bool) -> Entry:
    part = ToolReturnPart(
        call.tool_name,
        content.to_model(blocks),
        call.tool_call_id,
        outcome="failed" if is_error else "success",
    )
    return Entry(TOOL_RETURN, {"turn_id": turn_id, "message": _dump(ModelRequest(parts=[part]))})


def mark_interrupted(entries: Sequence[Entry]) -> list[Entry]:
    """Note on the last entry that a person stopped the turn there, so that a restart does not go on."""
    if not entries:
        return []
    return [*entries[:-1], replace(entries[-1], body={**entries[-1].body, "interrupted": True})]


def _parse(entries: Sequence[Entry]) -> list[Line]:
    """Entries of another harness, left from before a session changed its own, are passed over."""
    ours = [entry for entry in entries if entry.kind in _KINDS and "message" in entry.body]
    messages = ModelMessagesTypeAdapter.validate_python([entry.body["message"] for entry in ours])
    return [_line(entry, message) for entry, message in zip(ours, messages, strict=True)]


def _line(entry: Entry, message: ModelMessage) -> Line:
    source = entry.body.get("input")
    return Line(
        kind=entry.kind,
        message=message,
        turn_id=str(entry.body.get("turn_id") or ""),
        input=source if isinstance(source, str) else None,
        interrupted=bool(entry.body.get("interrupted")),
    )


def _dump(message: ModelMessage) -> JsonObject:
    dumped: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python([message], mode="json", exclude_none=True)
    body = _without(dumped[0])
    body["parts"] = [_without(part) for part in body["parts"]]
    return body


def _without(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in _NOT_STORED}
