"""Tracks tool calls that need a person's approval. All harnesses use this module, and it does no I/O.

A request for approval is recorded as an event in the log and as a marker entry (a mark) in the conversation, both in
one commit. The API appends the decision as another event. Before an approved call starts, a second mark is written. If
a later attempt of the turn finds this second mark but no result, it does not run the call again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from footplate.domain import audit
from footplate.domain.json import Json, JsonObject, clean
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event

MARK: Final = "approval"
DENIED_BY_NEW_MESSAGE: Final = (
    "Denied: this call was not approved before the user sent a new message. It had no effect."
)
INTERRUPTED_WHILE_PENDING: Final = (
    "Not run: the user interrupted the turn while this call was waiting for approval. It had no effect."
)


def pending_mark(turn_id: str, call_id: str, use: Event, *, directory: str | None = None) -> Entry:
    """The mark of a call that requires approval. `directory`: the command's working directory, if nothing that outlives
    the process records it.
    """
    body: JsonObject = {
        "turn_id": turn_id,
        "call_id": call_id,
        "event_id": use.id,
        "event_type": use.type,
        "input_digest": input_digest(use.body.get("input")),
    }
    return Entry(MARK, body if directory is None else {**body, "directory": directory})


def started_mark(turn_id: str, call_id: str, use: Event) -> Entry:
    return Entry(MARK, {"turn_id": turn_id, "call_id": call_id, "event_id": use.id, "started": True})


def input_digest(call_input: Json) -> str:
    """The digest of an input as it is logged. A call may run only with the input that the person was shown."""
    return audit.hash_json(clean(call_input))


@dataclass(slots=True)
class ApprovalLedger:
    """The approval marks of a conversation."""

    requests: dict[str, Event] = field(default_factory=dict)
    """The event that asks for approval, by call id. It has only the fields that a result needs."""
    started: set[str] = field(default_factory=set)
    """Ids of calls that may have taken effect."""
    digests: dict[str, str] = field(default_factory=dict)
    """The digest of the input that the person was shown, by call id."""
    directories: dict[str, str] = field(default_factory=dict)
    """The command's working directory, by call id, if it was recorded."""

    def add_mark(self, entry: Entry) -> None:
        call_id, body = str(entry.body.get("call_id")), entry.body
        if body.get("started"):
            self.started.add(call_id)
        else:
            if isinstance(shown := body.get("input_digest"), str):
                self.digests[call_id] = shown
            if isinstance(directory := body.get("directory"), str):
                self.directories[call_id] = directory
            self.requests[call_id] = Event(str(body.get("event_type")), {"call_id": call_id}, str(body.get("event_id")))

    def clear(self) -> None:
        self.requests.clear()
        self.started.clear()
        self.digests.clear()
        self.directories.clear()


def decisions_by_request(turn_events: Sequence[Event]) -> dict[str, Event]:
    """The decisions, by the id of the event that asked for approval."""
    return {
        str(event.body.get("tool_use_id")): event for event in turn_events if event.type == ev.USER_TOOL_CONFIRMATION
    }


def is_approved(decision: Event) -> bool:
    return decision.body.get("result") == "allow"


def edited_input(decision: Event) -> JsonObject | None:
    """The input of the approved call, if the person changed it."""
    updated = decision.body.get("updated_input")
    return updated if isinstance(updated, dict) else None


def edited_input_notice(edited: JsonObject) -> Json:
    """Tells the model, before the result, that the call ran with another input than the one the model sent."""
    text = json.dumps(edited, ensure_ascii=False)
    return ev.text_block(f"The user changed the input of this call before approving it. It ran with this input: {text}")


def denial_message(decision: Event) -> str:
    """The tool result of a denied call, for the model."""
    reason = decision.body.get("deny_message")
    return f"The user denied this call. It had no effect.{f' Reason: {reason}' if reason else ''}"
