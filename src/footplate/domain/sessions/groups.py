"""Groups of child sessions: what a group is started with, its result, and the limits.

A child is an ordinary session that ends when its queue is empty. All children that one call of a session starts are a
group. A group has a result when all its members have ended, or when the first one has succeeded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from footplate.domain.json import Json, JsonObject
from footplate.domain.sessions.ending import EndOutcome
from footplate.domain.sessions.events import USER_CUSTOM_TOOL_RESULT, Event, custom_tool_use, text_block
from footplate.domain.sessions.steps import DEFAULT_MAX_RUNNING, ChildRequest, WaitFor

__all__ = ["DEFAULT_MAX_RUNNING", "ChildRequest", "WaitFor"]

SPAWN_SESSIONS: Final = "spawn_sessions"
WAIT_SESSIONS: Final = "wait_sessions"
MESSAGE_SESSION: Final = "message_session"
SESSION_TOOLS: Final = (SPAWN_SESSIONS, WAIT_SESSIONS, MESSAGE_SESSION)
"""The tools with which an agent starts child sessions and works with them."""
MAX_MEMBERS: Final = 500
"""Children of one group."""
MAX_RESULT_CHARACTERS: Final = 24_000
"""Characters of the result of a group. The texts of its members share them, so the parent's log stays small."""
_MAX_TEXT_CHARACTERS: Final = 2_000
_WAITS_FOR_GROUP: Final = "waits_for_sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    max_depth: int = 3
    """1: children cannot start sessions."""
    max_sessions: int = 100
    """Sessions below a root session, which no other one has started, that have not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnedGroup:
    """A group that was started, in the order of the request."""

    id: str
    session_ids: tuple[str, ...]
    names: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberResult:
    index: int
    session_id: str
    name: str | None = None
    outcome: EndOutcome | None = None
    """None: it has not ended."""
    text: str = ""
    """The result of its last turn before the check: the last message of the agent, or the output of a command."""
    error: str | None = None

    @property
    def label(self) -> str:
        return self.name or str(self.index + 1)

    def dump(self) -> JsonObject:
        return {
            "index": self.index,
            "name": self.name,
            "session_id": self.session_id,
            "outcome": None if self.outcome is None else self.outcome.value,
            "text": self.text,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    group_id: str
    wait_for: WaitFor = WaitFor.ALL
    picks_one: bool = False
    """Whether the parent takes over the files of one member, so one success is enough."""
    members: tuple[MemberResult, ...] = ()
    waited_for_by: str | None = None
    """The event of the call for which the end of the group adds the result to the log."""

    @property
    def completed(self) -> Sequence[MemberResult]:
        return [member for member in self.members if member.outcome is EndOutcome.COMPLETED]

    @property
    def chosen(self) -> MemberResult | None:
        """The member whose files the parent takes over: the first in the list that completed."""
        return self.completed[0] if self.picks_one and self.completed else None

    @property
    def has_ended(self) -> bool:
        """Whether the group has its result. Until then, the states of its members can change."""
        is_first_success = self.wait_for is WaitFor.FIRST_SUCCESS and bool(self.completed)
        return is_first_success or all(member.outcome is not None for member in self.members)

    @property
    def succeeded(self) -> bool:
        if self.picks_one or self.wait_for is WaitFor.FIRST_SUCCESS:
            return bool(self.completed)
        return len(self.completed) == len(self.members)

    @property
    def text(self) -> str:
        """The result for a person or a model to read: a summary, then each member with its result."""
        lines = [f"{self.summary} Chosen: {self.chosen.label}." if self.chosen else self.summary]
        for member in self.members:
            state = "not ended" if member.outcome is None else member.outcome.value
            lines.append(
                f"{member.label} ({member.session_id}): {state}" + (f": {member.error}" if member.error else "")
            )
            if member.text:
                lines.append(member.text)
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        total, completed = len(self.members), len(self.completed)
        return f"{completed} of {total} session{'' if total == 1 else 's'} completed."

    def dump(self) -> list[Json]:
        return [member.dump() for member in self.members]


def text_limit(members: int) -> int:
    """Return the maximum characters of a member's text, and of its error, in the result of a group of this size."""
    return max(min(_MAX_TEXT_CHARACTERS, MAX_RESULT_CHARACTERS // (2 * max(members, 1))), 20)


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def waiting_call(name: str, call_input: JsonObject, *, call_id: str) -> Event:
    """Return the event of a call whose result is that of a group. Only the server submits it."""
    event = custom_tool_use(name, call_input, call_id=call_id)
    event.body[_WAITS_FOR_GROUP] = True
    return event


def is_waiting_call(event: Event) -> bool:
    """Whether the event is of a call whose result is that of a group."""
    return event.body.get(_WAITS_FOR_GROUP) is True


def result_event(call_id: str, result: GroupResult) -> Event:
    """Return the event with the result of a group, for the call that waits for it. `call_id`: the call's event."""
    # While other members run, one earlier in the list can still complete, so the choice is not final.
    shown = result if all(member.outcome for member in result.members) else replace(result, picks_one=False)
    return Event(
        USER_CUSTOM_TOOL_RESULT,
        {
            "custom_tool_use_id": call_id,
            "content": [text_block(shown.text)],
            "is_error": not result.succeeded,
            "group_id": result.group_id,
        },
    )
