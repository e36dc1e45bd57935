"""Calls that wait for a person's word, and how far each of them is. Pure, and the same for every harness.

An ask is an event, and a mark in the conversation in the same commit. The answer is an event that the api appends.
Before a call that was allowed starts, a second mark says so: an attempt that finds that mark and no result does not
make the call again, on whatever host it is.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from footplate.domain import audit
from footplate.domain import events as ev
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject, clean
from footplate.domain.ports import Entry

MARK: Final = "approval"
SUPERSEDED: Final = "Denied: nobody allowed this call, and the user sent a new message instead. It had no effect."
STOPPED: Final = "Not run: the user interrupted the turn while this call was waiting."


def asked(turn_id: str, call_id: str, use: Event, *, directory: str | None = None) -> Entry:
    """`directory`: where a command would have run, where that is not told by anything that outlives the process."""
    body: JsonObject = {
        "turn_id": turn_id,
        "call_id": call_id,
        "event_id": use.id,
        "event_type": use.type,
        "input_digest": digest(use.body.get("input")),
    }
    return Entry(MARK, body if directory is None else {**body, "directory": directory})


def started(turn_id: str, call_id: str, use: Event) -> Entry:
    return Entry(MARK, {"turn_id": turn_id, "call_id": call_id, "event_id": use.id, "started": True})


def digest(given: Json) -> str:
    """Of an input as the log has it. The call that is made must have the same as the one that a person was shown."""
    return audit.hashed(clean(given))


@dataclass(slots=True)
class Ledger:
    """What the marks of a conversation say."""

    asked: dict[str, Event] = field(default_factory=dict)
    """By the call's id, the event that asks, as far as a result needs it."""
    started: set[str] = field(default_factory=set)
    """Ids of calls that may have taken effect."""
    digests: dict[str, str] = field(default_factory=dict)
    """By the call's id, the digest of the input that people were shown."""
    directories: dict[str, str] = field(default_factory=dict)
    """By the call's id, where it would have run, if that was told."""

    def note(self, entry: Entry) -> None:
        call_id, body = str(entry.body.get("call_id")), entry.body
        if body.get("started"):
            self.started.add(call_id)
        else:
            if isinstance(shown := body.get("input_digest"), str):
                self.digests[call_id] = shown
            if isinstance(directory := body.get("directory"), str):
                self.directories[call_id] = directory
            self.asked[call_id] = Event(str(body.get("event_type")), {"call_id": call_id}, str(body.get("event_id")))

    def clear(self) -> None:
        self.asked.clear()
        self.started.clear()
        self.digests.clear()
        self.directories.clear()


def answers(turn_events: Sequence[Event]) -> dict[str, Event]:
    """What people said, by the event that asked."""
    return {
        str(event.body.get("tool_use_id")): event for event in turn_events if event.type == ev.USER_TOOL_CONFIRMATION
    }


def allows(answer: Event) -> bool:
    return answer.body.get("result") == "allow"


def edited(answer: Event) -> JsonObject | None:
    """What the call is to be made with, if a person changed it."""
    given = answer.body.get("updated_input")
    return given if isinstance(given, dict) else None


def told_of_edit(given: JsonObject) -> Json:
    """For the model, which sees its own input in the call, before the result."""
    text = json.dumps(given, ensure_ascii=False)
    return ev.text_block(f"A person allowed this call with another input, and it was made with that: {text}")


def denial(answer: Event) -> str:
    """For the model."""
    said = answer.body.get("deny_message")
    return f"A person denied this call{f': {said}' if said else '.'} It had no effect."
