"""Wire models of the steps in a session's queue, a Footplate extension of the reference API."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from footplate.api.wire.agent.agents import ShellModeName, TurnOverrides, normalise_definition_fields
from footplate.api.wire.request_base import (
    Body,
    Id,
    Parameters,
    Text,
    dump_sent_fields,
    optional_timestamp,
    timestamp,
)
from footplate.api.wire.session.content import MessageContent
from footplate.api.wire.session.delivery import ProjectSelector
from footplate.domain.errors import InvalidRequest
from footplate.domain.files.delivery import MAX_MESSAGE_CHARACTERS
from footplate.domain.json import JsonObject
from footplate.domain.projects.project import check_branch
from footplate.domain.sessions import groups, step_references, steps
from footplate.domain.sessions.steps import (
    Branches,
    ChildRequest,
    OnFailure,
    ParallelSessions,
    Playback,
    Step,
    StepDefinition,
    StepDelivery,
    StepKind,
    StepState,
    WaitFor,
)
from footplate.gate.shell import step_references as shell_references

MAX_STEPS = 100
_State = Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]


def _check_condition(expression: str) -> str:
    try:
        step_references.check_condition(expression, where="condition")
    except InvalidRequest as error:
        raise ValueError(error.message.partition(": ")[2]) from error
    return expression


def check_command_text(command: str, *, with_payload: bool = False) -> str:
    """Raises `ValueError` for a reference in a place where it is not allowed. For validators."""
    try:
        shell_references.check_command(command, with_payload=with_payload)
    except InvalidRequest as error:
        raise ValueError(f"{error.message.partition(': ')[2]}. {error.help_text}") from error
    return command


def _check_text(text: str) -> str:
    try:
        step_references.find_references(text, where="text")
    except InvalidRequest as error:
        raise ValueError(f"{error.message.partition(': ')[2]}. {error.help_text}") from error
    return text


def _check_branch(branch: str) -> str:
    try:
        return check_branch(branch)
    except InvalidRequest as error:
        raise ValueError(f"{error.message.partition(': ')[2]}. {error.help_text}") from error


StepName = Annotated[
    str,
    StringConstraints(pattern=f"^{step_references.NAME_PATTERN}$"),
    Field(description="Later steps refer to the result by this name. The last step with the name counts."),
]
Condition = Annotated[
    Text,
    StringConstraints(max_length=step_references.MAX_CONDITION),
    AfterValidator(_check_condition),
    Field(description="A CEL expression over `steps`. The step is skipped if it is false."),
]
Command = Annotated[Text, StringConstraints(max_length=50_000), AfterValidator(check_command_text)]
ReferenceText = Annotated[Text, StringConstraints(max_length=50_000), AfterValidator(_check_text)]
CommitMessage = Annotated[
    Text,
    StringConstraints(max_length=MAX_MESSAGE_CHARACTERS),
    AfterValidator(_check_text),
    Field(description="Message of the commit with the agent's uncommitted changes. Default: the session's title."),
]
BranchName = Annotated[Text, AfterValidator(_check_branch)]
Seconds = Annotated[float, Field(gt=0, le=604_800, strict=False)]


class _StepFields(Body):
    name: StepName | None = None
    condition: Condition | None = None
    on_failure: Annotated[
        Literal["stop", "continue", "retry"],
        Field(description="`stop` pauses the session. `retry` repeats the step, then pauses the session."),
    ] = "stop"
    max_attempts: Annotated[int, Field(ge=1, le=20, description="For `retry`.")] = steps.DEFAULT_ATTEMPTS
    timeout_seconds: Seconds | None = None
    ends_session: Annotated[
        bool, Field(description="The session ends with this step, completed or failed. Later steps are cancelled.")
    ] = False

    def _define(self, kind: StepKind) -> StepDefinition:
        return StepDefinition(
            kind=kind,
            name=self.name,
            condition=self.condition,
            on_failure=OnFailure(self.on_failure),
            max_attempts=self.max_attempts,
            timeout_seconds=self.timeout_seconds,
            ends_session=self.ends_session,
        )

    @property
    def overrides_of_turn(self) -> JsonObject:
        return {}


class PromptStep(_StepFields):
    """A message to the agent. References are replaced in its texts."""

    kind: Literal["prompt"]
    content: MessageContent | ReferenceText
    overrides: TurnOverrides | None = None

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        for block in self.content if isinstance(self.content, list) else ():
            _check_text(str(getattr(block, "text", "")))
        return self

    def to_definition(self) -> StepDefinition:
        content: list[JsonObject] = (
            [{"type": "text", "text": self.content}]
            if isinstance(self.content, str)
            else [dump_sent_fields(block) for block in self.content]
        )
        return replace(self._define(StepKind.PROMPT), content=tuple(content))

    @property
    def overrides_of_turn(self) -> JsonObject:
        return normalise_definition_fields(self.overrides) if self.overrides is not None else {}


class ShellStep(_StepFields):
    """A command in the session's environment, without a model."""

    kind: Literal["shell"]
    command: Command
    shell_mode: ShellModeName = None
    terminal: Annotated[
        bool, Field(description="Run it on the session's terminal, where people see it and can type.")
    ] = False

    def to_definition(self) -> StepDefinition:
        return replace(self._define(StepKind.SHELL), command=self.command, in_terminal=self.terminal)

    @property
    def overrides_of_turn(self) -> JsonObject:
        return {} if self.shell_mode is None else {"shell_mode": self.shell_mode}


class ExternalStep(_StepFields):
    """Work that a client does. The session waits until the result is submitted."""

    kind: Literal["external"]
    instructions: ReferenceText | None = None

    @model_validator(mode="after")
    def _check_timeout(self) -> Self:
        if self.timeout_seconds is not None:
            raise ValueError("an external step has no `timeout_seconds`: it waits until the result is submitted")
        return self

    def to_definition(self) -> StepDefinition:
        return replace(self._define(StepKind.EXTERNAL), instructions=self.instructions or "")


SessionStep: TypeAlias = Annotated[PromptStep | ShellStep | ExternalStep, Field(discriminator="kind")]


class ChildSession(Body):
    """A session that a parallel step starts: with a prompt, a command, or several steps."""

    name: StepName | None = None
    title: Annotated[Text, StringConstraints(max_length=2000)] | None = None
    agent: Annotated[Id | None, Field(description="Without it, the agent of this session.")] = None
    prompt: ReferenceText | None = None
    shell: Command | None = None
    steps: Annotated[list[SessionStep], Field(min_length=1, max_length=20)] | None = None

    @model_validator(mode="after")
    def _check_work(self) -> Self:
        if sum(work is not None for work in (self.prompt, self.shell, self.steps)) != 1:
            raise ValueError("must have exactly one of `prompt`, `shell` and `steps`")
        return self

    def to_request(self) -> ChildRequest:
        if self.steps is not None:
            definitions = [step.to_definition() for step in self.steps]
        elif self.prompt is not None:
            definitions = [PromptStep(kind="prompt", content=self.prompt).to_definition()]
        else:
            definitions = [ShellStep(kind="shell", command=str(self.shell)).to_definition()]
        return ChildRequest(steps=tuple(definitions), name=self.name, title=self.title, agent_id=self.agent)


class ParallelStep(_StepFields):
    """Child sessions, each with a working tree of its own that starts as this session's."""

    kind: Literal["parallel"]
    sessions: Annotated[list[ChildSession], Field(min_length=1, max_length=groups.MAX_MEMBERS)]
    max_running: Annotated[int, Field(ge=1, le=100, description="How many run at a time.")] = groups.DEFAULT_MAX_RUNNING
    wait_for: Annotated[
        Literal["all", "first_success"],
        Field(description="`first_success`: the others are cancelled when the first one has completed."),
    ] = "all"
    branches: Annotated[
        Literal["none", "merge", "best"],
        Field(
            description="`merge`: the changes of the completed sessions are merged into its files, in order. "
            "`best`: this session gets the files of the first session, in order, whose `check` succeeds."
        ),
    ] = "none"
    check: Command | None = None

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.timeout_seconds is not None:
            raise ValueError("a parallel step has no `timeout_seconds`: it waits until the sessions have ended")
        if (self.check is not None) != (self.branches == "best"):
            raise ValueError("`branches: best` and `check` must be used together")
        return self

    def to_definition(self) -> StepDefinition:
        parallel = ParallelSessions(
            sessions=tuple(child.to_request() for child in self.sessions),
            max_running=self.max_running,
            wait_for=WaitFor(self.wait_for),
            branches=Branches(self.branches),
            check=self.check,
        )
        return replace(self._define(StepKind.PARALLEL), parallel=parallel)


class _DeliveryStep(_StepFields):
    message: CommitMessage | None = None
    project_id: ProjectSelector = None

    @model_validator(mode="after")
    def _check_timeout(self) -> Self:
        if self.timeout_seconds is not None:
            raise ValueError("a step that delivers has no `timeout_seconds`")
        return self

    def _deliver(self, kind: StepKind, branch: str | None) -> StepDefinition:
        delivery = StepDelivery(branch=branch, message=self.message, project_id=self.project_id)
        return replace(self._define(kind), delivery=delivery)


class MergeStep(_DeliveryStep):
    """Merges the session's work into a branch of its project's repository."""

    kind: Literal["merge"]
    into: Annotated[BranchName | None, Field(description="Default: the branch that the session started from.")] = None

    def to_definition(self) -> StepDefinition:
        return self._deliver(StepKind.MERGE, self.into)


class PushStep(_DeliveryStep):
    """Pushes the session's work as a branch to its project's repository."""

    kind: Literal["push"]
    branch: Annotated[BranchName | None, Field(description="Default: `footplate/` and the session's ID.")] = None

    def to_definition(self) -> StepDefinition:
        return self._deliver(StepKind.PUSH, self.branch)


NewStep: TypeAlias = PromptStep | ShellStep | ExternalStep | ParallelStep | MergeStep | PushStep


class AddSteps(Body):
    steps: Annotated[list[Annotated[NewStep, Field(discriminator="kind")]], Field(min_length=1, max_length=MAX_STEPS)]
    before: Annotated[Id | None, Field(description="A pending step. Without it, the steps are added at the end.")] = (
        None
    )


_CONTENT_FIELDS: Final[Mapping[StepKind, Sequence[str]]] = {
    StepKind.PROMPT: ("content",),
    StepKind.SHELL: ("command", "terminal"),
    StepKind.EXTERNAL: ("instructions",),
    StepKind.PARALLEL: (),
    StepKind.MERGE: ("into", "message", "project_id"),
    StepKind.PUSH: ("branch", "message", "project_id"),
    StepKind.TERMINAL: (),
}
"""The fields that only steps of a kind have, and that can be edited."""


class EditStep(Body):
    """The fields that are sent replace those of the step."""

    name: StepName | None = None
    condition: Condition | None = None
    on_failure: Literal["stop", "continue", "retry"] = "stop"
    max_attempts: Annotated[int, Field(ge=1, le=20)] = steps.DEFAULT_ATTEMPTS
    timeout_seconds: Seconds | None = None
    ends_session: bool = False
    content: MessageContent | ReferenceText | None = None
    command: Command | None = None
    terminal: bool = False
    instructions: ReferenceText | None = None
    into: BranchName | None = None
    branch: BranchName | None = None
    message: CommitMessage | None = None
    project_id: ProjectSelector = None

    def apply(self, step: Step) -> StepDefinition:
        old, sent = step.definition, self.model_fields_set
        allowed = _CONTENT_FIELDS[old.kind]
        if foreign := sorted(sent & {field for fields in _CONTENT_FIELDS.values() for field in fields} - {*allowed}):
            raise InvalidRequest(
                f"{foreign[0]}: a step of kind {old.kind.value} has no such field",
                field=foreign[0],
                help_text=f"It has {', '.join(f'`{field}`' for field in allowed or ('name',))}.",
            )
        if null := [field for field in sorted(sent & {"content", "command"}) if getattr(self, field) is None]:
            raise InvalidRequest(f"{null[0]}: must not be null", field=null[0])
        if old.kind not in {StepKind.PROMPT, StepKind.SHELL} and self.timeout_seconds is not None:
            raise InvalidRequest(
                f"timeout_seconds: a step of kind {old.kind.value} has no time limit", field="timeout_seconds"
            )
        common = sent & {"name", "condition", "max_attempts", "timeout_seconds", "ends_session"}
        new = replace(old, **{name: getattr(self, name) for name in common})
        if "on_failure" in sent:
            new = replace(new, on_failure=OnFailure(self.on_failure))
        if "content" in sent and self.content is not None:
            prompt = PromptStep(kind="prompt", content=self.content)
            new = replace(new, content=prompt.to_definition().content)
        if "command" in sent and self.command is not None:
            new = replace(new, command=self.command)
        if "terminal" in sent:
            new = replace(new, in_terminal=self.terminal)
        if "instructions" in sent:
            new = replace(new, instructions=self.instructions or "")
        if old.delivery is not None:
            names = {steps.BRANCH_FIELDS[old.kind]: "branch", "message": "message", "project_id": "project_id"}
            changes = {names[field]: getattr(self, field) for field in sent & {*names}}
            new = replace(new, delivery=replace(old.delivery, **changes))
        return new


class MoveStep(Body):
    before: Annotated[Id | None, Field(description="A pending step, or null for the end of the queue.")]


class RetryStep(Body):
    play: Annotated[bool, Field(description="Whether the session also plays, if it is paused.")] = False


class SubmitResult(Body):
    """The result of an external step."""

    status: Literal["completed", "failed", "timed_out"]
    stdout: Annotated[str, StringConstraints(max_length=50_000)] = ""
    stderr: Annotated[str, StringConstraints(max_length=50_000)] = ""
    exit_code: Annotated[int | None, Field(ge=-(2**31), le=2**31 - 1)] = None
    duration_ms: Annotated[int | None, Field(ge=0, le=2**53)] = None
    error_message: Annotated[str | None, StringConstraints(max_length=10_000)] = None

    def to_command(self) -> JsonObject:
        """Returns the result in the form in which commands are logged."""
        return {
            "status": self.status,
            "exit_code": self.exit_code,
            "duration_ms": self.duration_ms,
            "error": self.error_message,
            "stdout": {"text": self.stdout, "bytes": len(self.stdout.encode())},
            "stderr": {"text": self.stderr, "bytes": len(self.stderr.encode())},
        }


class ListSteps(Parameters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    page: Text | None = None
    states: Annotated[list[_State], Field(alias="states[]", default_factory=list)]

    @property
    def parsed_states(self) -> list[StepState]:
        return [StepState(state) for state in self.states]


def serialize_step(step: Step) -> JsonObject:
    definition = step.definition
    has_ended = step.state not in {StepState.PENDING, StepState.RUNNING}
    return {
        "id": step.id,
        "type": "step",
        "session_id": step.session_id,
        "kind": definition.kind.value,
        "name": definition.name,
        "state": step.state.value,
        "waiting_for": step.waiting_for,
        "sort_key": step.sort_key,
        **definition.dump(),
        "is_message": step.is_message,
        "attempt": step.attempt,
        "turn_id": step.turn_id,
        "result": steps.result_fields(step) if has_ended and (step.turn_id or step.result) else None,
        "created_at": timestamp(step.created_at),
        "started_at": optional_timestamp(step.started_at),
        "ended_at": optional_timestamp(step.ended_at),
    }


def serialize_playback(session_id: str, playback: Playback) -> JsonObject:
    return {
        "type": "session_playback",
        "session_id": session_id,
        "playing": playback.playing,
        "next_steps": playback.next_steps,
        "pause_reason": None if playback.reason is None else playback.reason.value,
    }
