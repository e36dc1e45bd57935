"""The steps of a pipeline file, with all rules for a single step. The server checks the same again."""

import json
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from footplate.domain.errors import InvalidRequest
from footplate.domain.files.delivery import MAX_MESSAGE_CHARACTERS
from footplate.domain.projects.project import check_branch
from footplate.domain.sessions import groups, step_references, steps
from footplate.gate.shell import step_references as shell_references

MAX_STEPS: Final = 100
"""As many as one request can add, so that all of them are added or none."""
_KINDS: Final = ("prompt", "shell", "external", "parallel", "merge", "push")
STEP_FIELDS: Final = (*_KINDS, "name", "if", "on_failure", "attempts", "timeout", "ends_session")
PARALLEL_FIELDS: Final = (*STEP_FIELDS, "max_running", "wait_for", "branches", "check")
SESSION_FIELDS: Final = ("name", "title", "agent", "prompt", "shell", "steps")
_BRANCH: Final = "branch name"
DELIVERY_OPTIONS: Final = "delivery options"
WITH_PAYLOAD: Final = "with_payload"
"""In the context of the validation: whether the steps are those of a trigger, which can refer to its payload."""


def _checked_by(check: Callable[[str], object]) -> AfterValidator:
    def validate(text: str) -> str:
        try:
            check(text)
        except InvalidRequest as error:
            raise ValueError(f"{error.message.partition(': ')[2]}. {error.help_text}") from error
        return text

    return AfterValidator(validate)


_Text = Annotated[
    str,
    StringConstraints(min_length=1, max_length=50_000),
    _checked_by(lambda text: step_references.find_references(text, where="text")),
]


def _check_command(command: str, info: ValidationInfo) -> str:
    with_payload = bool(info.context and info.context.get(WITH_PAYLOAD))
    try:
        shell_references.check_command(command, with_payload=with_payload)
    except InvalidRequest as error:
        raise ValueError(f"{error.message.partition(': ')[2]}. {error.help_text}") from error
    return command


_Command = Annotated[str, StringConstraints(min_length=1, max_length=50_000), AfterValidator(_check_command)]
_Condition = Annotated[
    str,
    StringConstraints(min_length=1, max_length=step_references.MAX_CONDITION),
    _checked_by(lambda text: step_references.check_condition(text, where="if")),
]


_Message = Annotated[_Text, StringConstraints(max_length=MAX_MESSAGE_CHARACTERS)]
_Branch = Annotated[str, _checked_by(check_branch)]
_Name = Annotated[str, StringConstraints(pattern=f"^{step_references.NAME_PATTERN}$")]


class _PipelineStep(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: _Name | None = Field(default=None, description="Later steps refer to the result by this name.")
    condition: _Condition | None = Field(
        default=None, alias="if", description="A CEL expression over `steps`. The step is skipped if it is false."
    )
    on_failure: Literal["stop", "continue", "retry"] = Field(
        default="stop",
        description="`stop` pauses the session, `continue` runs the next step, `retry` repeats the step.",
    )
    attempts: Annotated[int, Field(ge=1, le=20)] | None = Field(
        default=None, description=f"How often a step with `on_failure: retry` runs. Default {steps.DEFAULT_ATTEMPTS}."
    )
    timeout: Annotated[float, Field(gt=0, le=604_800)] | None = Field(default=None, description="In seconds.")
    ends_session: bool = Field(
        default=False, description="The session ends with the step, completed or failed. Later steps are cancelled."
    )

    _kind: ClassVar[str]
    _text_field: ClassVar[str]
    """The field of the API for the text of the step."""

    @property
    def text(self) -> str:
        return str(getattr(self, self._kind))

    def to_wire(self) -> dict[str, Any]:
        fields = {
            "name": self.name,
            "condition": self.condition,
            "max_attempts": self.attempts,
            "timeout_seconds": self.timeout,
            "ends_session": self.ends_session or None,
        }
        sent = {name: value for name, value in fields.items() if value is not None}
        return {"kind": self._kind, self._text_field: self.text, **sent, "on_failure": self.on_failure}

    @field_validator("attempts")
    @classmethod
    def _check_attempts(cls, attempts: int | None, info: ValidationInfo) -> int | None:
        if attempts is not None and info.data.get("on_failure", "retry") != "retry":
            raise ValueError("only a step with `on_failure: retry` has attempts")
        return attempts


class ShellStep(_PipelineStep):
    _kind = "shell"
    _text_field = "command"
    shell: _Command = Field(description="A command in the session's environment.")


class PromptStep(_PipelineStep):
    _kind = "prompt"
    _text_field = "content"
    prompt: _Text = Field(description="A message to the agent.")


class ExternalStep(_PipelineStep):
    _kind = "external"
    _text_field = "instructions"
    external: _Text = Field(description="What a client has to do. The session waits until it submits the result.")


class PipelineSession(BaseModel):
    """A session of a parallel step."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: _Name | None = Field(default=None, description="The name in the result of the step.")
    title: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    agent: str | None = Field(default=None, description="The ID of an agent. Without it, the agent of the session.")
    prompt: _Text | None = Field(default=None, description="A message to the agent.")
    shell: _Command | None = Field(default=None, description="A command in the environment of the new session.")
    steps: Annotated[list["SessionStep"], Field(min_length=1, max_length=20)] | None = Field(
        default=None, description="Several steps, which can refer to each other."
    )

    @model_validator(mode="after")
    def _check_work(self) -> Self:
        if sum(work is not None for work in (self.prompt, self.shell, self.steps)) != 1:
            raise ValueError("a session must have exactly one of the fields prompt, shell and steps")
        return self

    def to_wire(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in SESSION_FIELDS if name != "steps"}
        sent = {name: value for name, value in fields.items() if value is not None}
        return sent if self.steps is None else {**sent, "steps": [step.to_wire() for step in self.steps]}


class ParallelStep(_PipelineStep):
    _kind = "parallel"
    _text_field = "sessions"
    parallel: Annotated[list[PipelineSession], Field(min_length=1, max_length=groups.MAX_MEMBERS)] = Field(
        description="Sessions that run at the same time, each with its own copy of the files."
    )
    max_running: Annotated[int, Field(ge=1, le=100)] = Field(
        default=groups.DEFAULT_MAX_RUNNING, description="How many sessions run at a time."
    )
    wait_for: Literal["all", "first_success"] = Field(
        default="all", description="`first_success`: the others are cancelled when the first one has completed."
    )
    branches: Literal["none", "merge", "best"] = Field(
        default="none",
        description="`merge` merges the files of the sessions in order. `best` takes those of the first session whose "
        "`check` succeeds.",
    )
    check: _Command | None = Field(default=None, description="The command that decides for `branches: best`.")

    @property
    def text(self) -> str:
        return "\n".join(session.prompt or session.shell or "" for session in self.parallel)

    @field_validator("check")
    @classmethod
    def _check_check(cls, check: str | None, info: ValidationInfo) -> str | None:
        if check is not None and info.data.get("branches", "best") != "best":
            raise ValueError("only a step with `branches: best` has a check")
        return check

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.branches == "best" and self.check is None:
            raise ValueError("a step with `branches: best` must have a check")
        if self.timeout is not None:
            raise ValueError("a parallel step has no timeout")
        return self

    def to_wire(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("max_running", "wait_for", "branches", "check")}
        sessions = [session.to_wire() for session in self.parallel]
        return {
            **super().to_wire(),
            "sessions": sessions,
            **{name: value for name, value in options.items() if value is not None},
        }


class _DeliveryOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    message: _Message | None = Field(
        default=None, description="Message of the commit with the uncommitted changes. Default: the session's title."
    )
    project: str | None = Field(default=None, description="The ID of a project, if the session has several.")


class MergeOptions(_DeliveryOptions):
    into: _Branch | None = Field(default=None, description="Default: the branch that the session started from.")


class PushOptions(_DeliveryOptions):
    branch: _Branch | None = Field(default=None, description="Default: `footplate/` and the ID of the session.")


def _find_form(delivery: object) -> str | None:
    return _BRANCH if isinstance(delivery, str) else DELIVERY_OPTIONS if isinstance(delivery, dict) else None


_DeliveryForm = Discriminator(
    _find_form,
    custom_error_type="delivery_form",
    custom_error_message="must be the name of a branch, or a mapping with the options of the delivery",
)


class _DeliveryStep(_PipelineStep):
    @property
    def text(self) -> str:
        return str(self._options.get("message") or "")

    @property
    def _options(self) -> dict[str, Any]:
        given = getattr(self, self._kind)
        if isinstance(given, str):
            return {self._text_field: given}
        options = given.model_dump(exclude_none=True)
        return {"project_id" if name == "project" else name: value for name, value in options.items()}

    @model_validator(mode="after")
    def _check_timeout(self) -> Self:
        if self.timeout is not None:
            raise ValueError("a step that delivers has no timeout")
        return self

    def to_wire(self) -> dict[str, Any]:
        fields = super().to_wire()
        del fields[self._text_field]
        return {**fields, **self._options}


class MergeStep(_DeliveryStep):
    _kind = "merge"
    _text_field = "into"
    merge: Annotated[
        Annotated[_Branch, Tag(_BRANCH)] | Annotated[MergeOptions, Tag(DELIVERY_OPTIONS)], _DeliveryForm
    ] = Field(description="The branch of the project's repository into which the session's work is merged, or options.")


class PushStep(_DeliveryStep):
    _kind = "push"
    _text_field = "branch"
    push: Annotated[Annotated[_Branch, Tag(_BRANCH)] | Annotated[PushOptions, Tag(DELIVERY_OPTIONS)], _DeliveryForm] = (
        Field(description="The branch that is created in the project's repository with the session's work, or options.")
    )


def _find_kind(step: object) -> str | None:
    kinds = [kind for kind in _KINDS if isinstance(step, dict) and kind in step]
    return tag(kinds[0]) if len(kinds) == 1 else None


def tag(kind: str) -> str:
    """A tag is part of the location of an error. It must not equal the name of a field."""
    return f"{kind} step"


SessionStep = Annotated[
    Annotated[PromptStep, Tag(tag("prompt"))]
    | Annotated[ShellStep, Tag(tag("shell"))]
    | Annotated[ExternalStep, Tag(tag("external"))],
    Discriminator(
        _find_kind,
        custom_error_type="step_kind",
        custom_error_message="a step of a session must have exactly one of the fields prompt, shell and external",
    ),
]
PipelineStep = Annotated[
    Annotated[PromptStep, Tag(tag("prompt"))]
    | Annotated[ShellStep, Tag(tag("shell"))]
    | Annotated[ExternalStep, Tag(tag("external"))]
    | Annotated[ParallelStep, Tag(tag("parallel"))]
    | Annotated[MergeStep, Tag(tag("merge"))]
    | Annotated[PushStep, Tag(tag("push"))],
    Discriminator(
        _find_kind,
        custom_error_type="step_kind",
        custom_error_message="a step must have exactly one of the fields prompt, shell, external, parallel, merge and "
        "push",
    ),
]


PipelineSession.model_rebuild()


class Pipeline(BaseModel):
    """Steps that run one after the other in a session."""

    model_config = ConfigDict(extra="forbid", strict=True)

    steps: Annotated[list[PipelineStep], Field(min_length=1, max_length=MAX_STEPS)]

    @property
    def merges_files(self) -> bool:
        """Whether a parallel step takes over the files of its sessions."""
        return any(isinstance(step, ParallelStep) and step.branches != "none" for step in self.steps)

    @property
    def delivers(self) -> bool:
        """Whether a step merges or pushes the session's work."""
        return any(isinstance(step, _DeliveryStep) for step in self.steps)

    def to_wire(self) -> list[dict[str, Any]]:
        return [step.to_wire() for step in self.steps]


def generate_schema() -> str:
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A pipeline file of `footplate queue run`",
        **{name: value for name, value in Pipeline.model_json_schema().items() if name != "title"},
    }
    return json.dumps(content, indent=2) + "\n"
