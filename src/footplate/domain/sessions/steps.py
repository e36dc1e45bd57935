"""The steps of a session's queue: what each one does, its states, and what happens after it fails.

A step is a prompt for the agent, a shell command, work that a client does elsewhere (`external`), a group of child
sessions (`parallel`), a delivery of the session's work to a branch (`merge`, `push`), or a shell for a person
(`terminal`). Steps run one at a time, in the order of the queue, each as a turn. A message that is sent as an event is
a step too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest
from footplate.domain.json import Json, JsonObject, as_object, as_objects
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus

CREATED: Final = "step.created"
UPDATED: Final = "step.updated"
STARTED: Final = "step.started"
MOVED: Final = "step.moved"
ENDED: Final = "step.ended"
PLAYBACK: Final = "step.playback"
CALL_STARTED: Final = "step.call_started"

DEFAULT_ATTEMPTS: Final = 3
DEFAULT_MAX_RUNNING: Final = 4
MAX_PENDING: Final = 1000
_RETRY_SECONDS: Final = 1.0
_MAX_RETRY_SECONDS: Final = 60.0


class StepKind(StrEnum):
    PROMPT = "prompt"
    SHELL = "shell"
    EXTERNAL = "external"
    """A client does the work and submits the result."""
    PARALLEL = "parallel"
    """Child sessions do the work. See `groups.py`."""
    MERGE = "merge"
    """The session's work is merged into a branch of its project."""
    PUSH = "push"
    """The session's work is pushed to its project as a branch."""
    TERMINAL = "terminal"
    """A person works in a shell on the session's terminal, until it is closed."""


class StepState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class OnFailure(StrEnum):
    STOP = "stop"
    """Pause the session, so that the next steps wait."""
    CONTINUE = "continue"
    RETRY = "retry"
    """Repeat the step, up to its number of attempts. Then pause the session."""


class PauseReason(StrEnum):
    REQUESTED = "requested"
    STEP_FAILED = "step_failed"
    GROUP = "group"
    """It is a member of a group of sessions, and starts when another member has ended."""


class WaitFor(StrEnum):
    """When a group of child sessions has a result."""

    ALL = "all"
    FIRST_SUCCESS = "first_success"
    """Then the others are cancelled."""


class Branches(StrEnum):
    """What happens to the files of child sessions."""

    NONE = "none"
    MERGE = "merge"
    """The changes of the completed ones are merged into the parent's files, in order."""
    BEST = "best"
    """The parent gets the files of the first completed one, in order. Each one ends with the check command."""


HARNESSES: Final[Mapping[StepKind, str]] = {
    StepKind.SHELL: "shell",
    StepKind.EXTERNAL: "external",
    StepKind.PARALLEL: "parallel",
    StepKind.MERGE: "delivery",
    StepKind.PUSH: "delivery",
    StepKind.TERMINAL: "terminal",
}
"""The harness that runs a step, if it is not the agent's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDefinition:
    """What a step does, as a client wrote it."""

    kind: StepKind
    name: str | None = None
    """For references and conditions of later steps."""
    content: tuple[JsonObject, ...] = ()
    """The content blocks of a prompt."""
    command: str = ""
    instructions: str = ""
    """What the client of an external step has to do."""
    condition: str | None = None
    """A CEL expression. The step is skipped if it is false."""
    on_failure: OnFailure = OnFailure.STOP
    max_attempts: int = DEFAULT_ATTEMPTS
    """For `retry`."""
    timeout_seconds: float | None = None
    parallel: "ParallelSessions | None" = None
    """The child sessions of a parallel step."""
    delivery: "StepDelivery | None" = None
    """What a merge or push step delivers."""
    in_terminal: bool = False
    """Whether a command runs on the session's terminal, where people see it and can type."""
    is_literal: bool = False
    """Whether `${steps.…}` in its texts is no reference: the texts come from a model, or have results in them."""
    ends_session: bool = False
    """Whether the session ends with the step, completed or failed. Steps behind it are cancelled."""
    is_check: bool = False
    """Whether the step is the check of a parallel step, whose output is not the result of the session."""
    retry_of: str | None = None
    """The id of the step that it repeats."""
    payload_values: Mapping[str, str] | None = None
    """For a step that a trigger has added: the values of its references to the payload, by path."""

    @property
    def requests(self) -> "tuple[ChildRequest, ...]":
        return () if self.parallel is None else self.parallel.sessions

    @property
    def reference_texts(self) -> list[str]:
        """The texts in which references are replaced when the step starts."""
        message = self.delivery.message if self.delivery is not None else None
        blocks = [block.get("text") for block in self.content]
        texts = [self.command, self.instructions, message, *blocks, *(request.text for request in self.requests)]
        return [] if self.is_literal else [text for text in texts if isinstance(text, str) and text]

    @property
    def contents(self) -> list[Sequence[JsonObject]]:
        """The contents of all messages that the step sends: to its agent, or to the sessions that it starts."""
        children = self.parallel.sessions if self.parallel is not None else ()
        nested = [content for child in children for step in child.steps for content in step.contents]
        return [self.content, *nested] if self.content else nested

    def dump(self) -> JsonObject:
        """Return the definition as JSON, without the kind and the name, which have columns of their own."""
        fields: dict[StepKind, JsonObject] = {
            StepKind.PROMPT: {"content": [*self.content]},
            StepKind.SHELL: {"command": self.command},
            StepKind.EXTERNAL: {"instructions": self.instructions},
            StepKind.PARALLEL: {} if self.parallel is None else self.parallel.dump(),
            StepKind.TERMINAL: {},
        }
        if self.delivery is not None:
            fields[self.kind] = self.delivery.dump(self.kind)
        values: JsonObject = {} if self.payload_values is None else {"payload_values": {**self.payload_values}}
        return {
            **fields[self.kind],
            "condition": self.condition,
            "on_failure": self.on_failure.value,
            "max_attempts": self.max_attempts,
            "timeout_seconds": self.timeout_seconds,
            "ends_session": self.ends_session,
            **({"terminal": True} if self.in_terminal else {}),
            **({"is_literal": True} if self.is_literal else {}),
            **({"is_check": True} if self.is_check else {}),
            **({} if self.retry_of is None else {"retry_of": self.retry_of}),
            **values,
        }

    @classmethod
    def load(cls, kind: str, name: str | None, stored: Mapping[str, Json]) -> "StepDefinition":
        condition, timeout = stored.get("condition"), stored.get("timeout_seconds")
        attempts, values = stored.get("max_attempts"), stored.get("payload_values")
        return cls(
            kind=StepKind(kind),
            name=name,
            content=tuple(as_objects(stored.get("content"))),
            command=str(stored.get("command") or ""),
            instructions=str(stored.get("instructions") or ""),
            condition=condition if isinstance(condition, str) else None,
            on_failure=OnFailure(str(stored.get("on_failure") or OnFailure.CONTINUE)),
            max_attempts=attempts if isinstance(attempts, int) else DEFAULT_ATTEMPTS,
            timeout_seconds=float(timeout) if isinstance(timeout, int | float) else None,
            parallel=ParallelSessions.load(stored) if kind == StepKind.PARALLEL else None,
            delivery=StepDelivery.load(StepKind(kind), stored) if kind in BRANCH_FIELDS else None,
            ends_session=stored.get("ends_session") is True,
            in_terminal=stored.get("terminal") is True,
            is_literal=stored.get("is_literal") is True,
            is_check=stored.get("is_check") is True,
            retry_of=_text_or_none(stored.get("retry_of")),
            payload_values={key: str(value) for key, value in values.items()} if isinstance(values, dict) else None,
        )


BRANCH_FIELDS: Final[Mapping[StepKind, str]] = {StepKind.MERGE: "into", StepKind.PUSH: "branch"}
"""Kinds of steps that deliver, and the field that names the branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDelivery:
    """What a merge or push step delivers, and to which branch."""

    branch: str | None = None
    """None: for a merge, the branch that the session started from; for a push, a branch named after the session."""
    message: str | None = None
    """The message of the commit, in which references are replaced. None: the title of the session."""
    project_id: str | None = None
    """None: the session's only project."""

    def dump(self, kind: StepKind) -> JsonObject:
        return {BRANCH_FIELDS[kind]: self.branch, "message": self.message, "project_id": self.project_id}

    @classmethod
    def load(cls, kind: StepKind, stored: Mapping[str, Json]) -> "StepDelivery":
        return cls(
            branch=_text_or_none(stored.get(BRANCH_FIELDS[kind])),
            message=_text_or_none(stored.get("message")),
            project_id=_text_or_none(stored.get("project_id")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRequest:
    """A child session that is to be started, with its steps."""

    steps: tuple[StepDefinition, ...]
    name: str | None = None
    title: str | None = None
    agent_id: str | None = None
    """None: the agent of its parent."""

    @property
    def text(self) -> str | None:
        """The text of its only step, in which references to results of its parent are replaced. Texts of several steps
        refer to each other. None: it has several steps, or content that is no text.
        """
        if len(self.steps) != 1:
            return None
        (step,) = self.steps
        texts = [block.get("text") for block in step.content]
        return step.command or (str(texts[0]) if len(texts) == 1 and isinstance(texts[0], str) else None)

    def with_text(self, text: str) -> "ChildRequest":
        """Return the request with this text, in which nothing is replaced again."""
        step = replace(self.steps[0], is_literal=True)
        if step.kind is StepKind.SHELL:
            return replace(self, steps=(replace(step, command=text),))
        return replace(self, steps=(replace(step, content=({"type": "text", "text": text},)),))

    def dump(self) -> JsonObject:
        """Return the request as JSON. Fields without a value are omitted, because there may be many requests."""
        steps: list[Json] = [
            {"kind": step.kind.value, "name": step.name, **{key: each for key, each in step.dump().items() if each}}
            for step in self.steps
        ]
        fields = {"name": self.name, "title": self.title, "agent": self.agent_id}
        return {**{key: text for key, text in fields.items() if text is not None}, "steps": steps}

    @classmethod
    def load(cls, stored: Mapping[str, Json]) -> "ChildRequest":
        steps = as_objects(stored.get("steps"))
        return cls(
            steps=tuple(
                StepDefinition.load(str(step["kind"]), _text_or_none(step.get("name")), step) for step in steps
            ),
            name=_text_or_none(stored.get("name")),
            title=_text_or_none(stored.get("title")),
            agent_id=_text_or_none(stored.get("agent")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelSessions:
    """What a parallel step does."""

    sessions: tuple[ChildRequest, ...]
    max_running: int = DEFAULT_MAX_RUNNING
    wait_for: WaitFor = WaitFor.ALL
    branches: Branches = Branches.NONE
    check: str | None = None
    """The command that decides whether a session has succeeded, for `best`."""

    def dump(self) -> JsonObject:
        return {
            "sessions": [request.dump() for request in self.sessions],
            "max_running": self.max_running,
            "wait_for": self.wait_for.value,
            "branches": self.branches.value,
            "check": self.check,
        }

    @classmethod
    def load(cls, stored: Mapping[str, Json]) -> "ParallelSessions":
        running = stored.get("max_running")
        return cls(
            sessions=tuple(map(ChildRequest.load, as_objects(stored.get("sessions")))),
            max_running=running if isinstance(running, int) else DEFAULT_MAX_RUNNING,
            wait_for=WaitFor(str(stored.get("wait_for") or WaitFor.ALL)),
            branches=Branches(str(stored.get("branches") or Branches.NONE)),
            check=_text_or_none(stored.get("check")),
        )


def _text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


TERMINAL: Final = StepDefinition(kind=StepKind.TERMINAL, on_failure=OnFailure.CONTINUE)
MESSAGE: Final = StepDefinition(kind=StepKind.PROMPT, on_failure=OnFailure.CONTINUE)
"""The definition of a message that was sent as an event. Its content is in the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedStep:
    """The step that a turn runs, if a client added it to the queue. Messages that are sent as events have none."""

    id: str
    position: int
    definition: StepDefinition
    attempt: int
    """1 for the first turn of the step."""
    results: Mapping[str, "Step"] = field(default_factory=dict)
    """The ended steps that it refers to, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step as it is in the queue, and its result."""

    id: str
    session_id: str
    position: int
    """The position of the event that created it."""
    sort_key: int
    state: StepState
    definition: StepDefinition
    is_message: bool
    """Whether it was sent as an event. Its content is then in the event, and cannot be edited."""
    attempt: int
    waiting_for: str | None = None
    """What a running step waits for: `action` of a client or person, or its `sessions`. What a pending one waits for:
    its `retry`."""
    turn_id: str | None
    result: JsonObject | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


def check_retry(step: Step, retried_as: str | None) -> None:
    """Raise `Refused` if a step cannot be repeated. `retried_as`: the step that repeats it already."""
    if step.is_message:
        raise InvalidRequest(
            f"Step {step.id!r} is a message that was sent as an event, and cannot be repeated.",
            help_text="Send the message again.",
        )
    if step.definition.kind is StepKind.TERMINAL:
        raise InvalidRequest(f"Step {step.id!r} is a terminal, and cannot be repeated.", help_text="Open another one.")
    if step.state not in {StepState.FAILED, StepState.CANCELLED}:
        raise Conflict(
            f"Step {step.id!r} cannot be repeated, because it is {step.state}.",
            help_text="Only failed and cancelled steps can be repeated.",
        )
    if retried_as is not None:
        raise Conflict(
            f"Step {step.id!r} is already repeated by step {retried_as!r}.",
            help_text="If that step did not complete either, repeat it instead.",
        )


@dataclass(frozen=True, slots=True)
class Playback:
    """Whether a session starts its steps by itself."""

    playing: bool = True
    next_steps: int = 0
    """How many steps a paused session may still start."""
    reason: PauseReason | None = None
    """Why it is paused."""


@dataclass(frozen=True, slots=True)
class StepEnd:
    """What happens to a step at the end of its turn."""

    state: StepState
    retry_after: float | None = None
    """Seconds until the step runs again. It is pending until then."""
    pauses: bool = False
    """Whether the session is paused."""


def decide_end(definition: StepDefinition, attempt: int, outcome: TurnOutcome) -> StepEnd:
    """Decide how a step ends, or that it runs again, from the outcome of its turn."""
    if outcome.status is TurnStatus.AWAITING:
        return StepEnd(StepState.RUNNING)
    state = _state_after(outcome)
    if state is StepState.COMPLETED or definition.on_failure is OnFailure.CONTINUE:
        return StepEnd(state)
    may_retry = state is StepState.FAILED and outcome.may_retry and attempt < definition.max_attempts
    if definition.on_failure is OnFailure.RETRY and may_retry:
        return StepEnd(StepState.PENDING, retry_after=min(_RETRY_SECONDS * 2 ** (attempt - 1), _MAX_RETRY_SECONDS))
    return StepEnd(state, pauses=True)


def _state_after(outcome: TurnOutcome) -> StepState:
    if outcome.status is TurnStatus.INTERRUPTED:
        return StepState.CANCELLED
    succeeded = outcome.status is TurnStatus.COMPLETED and not outcome.step_failed
    return StepState.COMPLETED if succeeded else StepState.FAILED


INTERRUPTED_WHILE_WAITING: Final = frozenset({StepKind.SHELL, StepKind.EXTERNAL})
"""Kinds of steps that an interrupt cancels while they wait for a decision or a result. As in the reference API, it has
no effect on the turn of a message that waits."""


def result_fields(step: Step) -> JsonObject:
    """Return the result of an ended step, with the fields that references and conditions use."""
    stored, command = step.result or {}, _command_of(step)
    data = as_object(stored.get("data"))
    seconds = (step.ended_at - step.started_at).total_seconds() if step.started_at and step.ended_at else 0.0
    return {
        "status": step.state.value,
        "stdout": stream_text(command.get("stdout")),
        "stderr": stream_text(command.get("stderr")),
        "exit_code": command.get("exit_code"),
        "duration_ms": command.get("duration_ms") or round(seconds * 1000),
        "error_message": command.get("error") or stored.get("error"),
        "text": stored.get("text") or "",
        **({"sessions": data["sessions"]} if "sessions" in data else {}),
    }


def stream_text(stream: object) -> str:
    """Return the text of a result's `stdout` or `stderr`."""
    return str(as_object(stream).get("text") or "")


def object_of_stream(step: Step, name: str) -> str | None:
    """Return the key of the object with a stream's complete output, if the result has only a part of it."""
    key = as_object(_command_of(step).get(name)).get("object")
    return key if isinstance(key, str) else None


def _command_of(step: Step) -> JsonObject:
    return as_object(as_object((step.result or {}).get("data")).get("command"))


def started_event(step: ClaimedStep) -> Event:
    return Event(STARTED, {"step_id": step.id, "attempt": step.attempt})


def in_step(event: Event, step: ClaimedStep | None) -> Event:
    """Return the event with the id of its step, as an extra field."""
    return event if step is None else replace(event, body={**event.body, "step_id": step.id})


def step_id_of(event_id: str) -> str:
    """Return the id of the step that an event created."""
    return f"{ids.STEP}_{event_id.partition('_')[2]}"


def event_id_of(step_id: str) -> str:
    return f"{ids.EVENT}_{step_id.partition('_')[2]}"
