"""Stores the conversations of subagents among the entries of the session, and finds the threads that are still open.

Each entry of a thread has the kind `thread` and contains an entry of the subagent's own conversation. The agent's
conversation ignores it. A thread that was started and not ended is open, and a later attempt at the turn resumes it.
"""

from dataclasses import dataclass, field
from typing import Final

from footplate.domain.json import JsonObject, as_object
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, Usage

THREAD: Final = "thread"


@dataclass(slots=True)
class OpenThread:
    """A subagent's thread that was started and not ended."""

    id: str
    agent_name: str
    turn_id: str
    call_id: str
    """The model's id of the call that started the thread."""
    use_id: str
    """The id of that call's event."""
    entries: list[Entry] = field(default_factory=list)
    """The subagent's conversation."""
    usage: Usage = field(default_factory=Usage)

    @property
    def use(self) -> Event:
        """The event of the call, with only the fields that a result needs."""
        return Event(ev.AGENT_TOOL_USE, {"call_id": self.call_id}, self.use_id)


@dataclass(slots=True)
class ThreadLedger:
    """The open threads of a session, by the id of the call that started each."""

    open: dict[str, OpenThread] = field(default_factory=dict)
    _latest_turn: str = ""
    _started_in_latest_turn: int = 0

    def started_in(self, turn_id: str) -> int:
        """How many threads the newest turn has started."""
        return self._started_in_latest_turn if turn_id == self._latest_turn else 0

    def add_entry(self, entry: Entry) -> None:
        body, thread_id = entry.body, str(entry.body.get("thread_id"))
        if started := as_object(body.get("started")):
            self._add_thread(thread_id, started)
        thread = next((one for one in self.open.values() if one.id == thread_id), None)
        if thread is None:
            return
        if (kind := body.get("kind")) is not None:
            thread.entries.append(Entry(str(kind), as_object(body.get("body"))))
        if (usage := body.get("usage")) is not None:
            thread.usage += threads.load_usage(usage)
        if body.get("ended"):
            del self.open[thread.call_id]

    def _add_thread(self, thread_id: str, started: JsonObject) -> None:
        name, turn_id, call_id, use_id = (
            str(started.get(field_name)) for field_name in ("agent_name", "turn_id", "call_id", "use_id")
        )
        self._started_in_latest_turn = self.started_in(turn_id) + 1
        self._latest_turn = turn_id
        self.open[call_id] = OpenThread(thread_id, name, turn_id, call_id, use_id)


def started_entry(thread: OpenThread) -> Entry:
    started: JsonObject = {
        "agent_name": thread.agent_name,
        "turn_id": thread.turn_id,
        "call_id": thread.call_id,
        "use_id": thread.use_id,
    }
    return Entry(THREAD, {"thread_id": thread.id, "started": started})


def ended_entry(thread: OpenThread) -> Entry:
    return Entry(THREAD, {"thread_id": thread.id, "ended": True})


def conversation_entry(thread: OpenThread, entry: Entry) -> Entry:
    """Wraps an entry of the subagent's conversation."""
    return Entry(THREAD, {"thread_id": thread.id, "kind": entry.kind, "body": entry.body})


def usage_entry(thread: OpenThread, usage: Usage) -> Entry:
    return Entry(THREAD, {"thread_id": thread.id, "usage": threads.dump_usage(usage)})
