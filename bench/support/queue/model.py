"""A model of a session's queue: reads the log of a session and checks that every change in it was permitted.

The log has one order, so it is the history in which concurrent clients and workers took effect. The model knows nothing
of the database: it is a list of pending steps, the running step, and whether the session plays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from footplate.domain.sessions import events, steps
from footplate.domain.sessions.events import Position


class QueueViolation(AssertionError):
    """The log has a change that the model does not permit."""


@dataclass(slots=True)
class QueueModel:
    pending: list[str] = field(default_factory=list)
    running: str | None = None
    playing: bool = True
    next_steps: int = 0
    states: dict[str, str] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    """How often each step was started."""
    retried: set[str] = field(default_factory=set)
    """The steps that were repeated."""

    def apply(self, position: Position) -> None:
        event = position.event
        body = event.body
        if event.type == steps.CREATED:
            self._check_retry(body.get("retry_of"), body["before"])
            self._insert(str(body["step_id"]), body["before"])
        elif event.type == steps.STARTED:
            self._start(str(body["step_id"]))
        elif event.type == events.USER_MESSAGE and "step_id" not in body:
            message_id = steps.step_id_of(event.id)
            if message_id in self.states:
                self._start(message_id)
            else:
                self._insert(message_id, None)
        elif event.type == steps.MOVED:
            step_id = str(body["step_id"])
            self._take(step_id)
            self._insert(step_id, body["before"])
        elif event.type == steps.UPDATED:
            self._require(str(body["step_id"]) in self.pending, "a step that is not pending was edited")
        elif event.type == steps.ENDED:
            self._end(str(body["step_id"]), str(body["state"]))
        elif event.type == steps.PLAYBACK:
            self.playing, self.next_steps = bool(body["playing"]), int(str(body["next_steps"]))
        elif event.type == events.STATUS_IDLE:
            self._idle(body.get("stop_reason"))

    def _insert(self, step_id: str, before: object) -> None:
        if before is not None:
            self._require(before in self.pending, "a step was placed before one that is not pending")
        self.pending.insert(len(self.pending) if before is None else self.pending.index(str(before)), step_id)
        self.states[step_id] = "pending"

    def _check_retry(self, step_id: object, before: object) -> None:
        if not isinstance(step_id, str):
            return
        self._require(self.states.get(step_id) in {"failed", "cancelled"}, f"{step_id} was repeated without a failure")
        self._require(step_id not in self.retried, f"{step_id} was repeated twice")
        self._require([before] == [*self.pending, None][:1], f"{step_id} was repeated behind other steps")
        self.retried.add(step_id)

    def _take(self, step_id: str) -> None:
        self._require(step_id in self.pending, f"{step_id} is not pending")
        self.pending.remove(step_id)

    def _start(self, step_id: str) -> None:
        self._require(self.running is None, f"{step_id} was started while {self.running} ran")
        self._require(self.pending[:1] == [step_id], f"{step_id} was started out of order")
        self._require(self.playing or self.next_steps > 0, f"{step_id} was started while the session was paused")
        self.pending.pop(0)
        self.next_steps = max(self.next_steps - 1, 0)
        self.running = step_id
        self.states[step_id] = "running"
        self.starts[step_id] = self.starts.get(step_id, 0) + 1

    def _end(self, step_id: str, state: str) -> None:
        if step_id == self.running:
            self.running = None
            if state == "pending":
                self.pending.insert(0, step_id)
        else:
            self._require(state in {"cancelled", "skipped", "failed"}, f"{step_id} ended as {state} without running")
            self._take(step_id)
            if state != "cancelled":
                self.next_steps = max(self.next_steps - 1, 0)
        self.states[step_id] = state

    def _idle(self, stop_reason: object) -> None:
        """A message has no event of its own at its end: its turn ends."""
        waits = isinstance(stop_reason, Mapping) and stop_reason.get("type") == "requires_action"
        if self.running is not None and not waits:
            self.states[self.running] = "completed"
            self.running = None

    def _require(self, condition: bool, problem: str) -> None:  # noqa: FBT001 - reads like an assertion
        if not condition:
            raise QueueViolation(problem)
