"""Reads a pipeline file: steps for a session's queue, in YAML. Each error names the line and column.

The server checks the same again. Here the whole file is checked before a session is created.
"""

import difflib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from footplate.domain.errors import InvalidRequest
from footplate.domain.sessions import groups, step_references, steps
from footplate.gate.shell import step_references as shell_references

MAX_STEPS: Final = 100
"""As many as one request can add, so that all of them are added or none."""
_KINDS: Final = ("prompt", "shell", "external", "parallel")
_FIELDS: Final = (*_KINDS, "name", "if", "on_failure", "attempts", "timeout", "ends_session")
_PARALLEL_FIELDS: Final = (*_FIELDS, "max_running", "wait_for", "branches", "check")
_SESSION_FIELDS: Final = ("name", "title", "agent", "prompt", "shell", "steps")


class InvalidPipeline(Exception):
    """The file cannot be used. Each problem is a line that starts with its place in the file."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))


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
_Command = Annotated[
    str, StringConstraints(min_length=1, max_length=50_000), _checked_by(shell_references.check_command)
]
_Condition = Annotated[
    str,
    StringConstraints(min_length=1, max_length=step_references.MAX_CONDITION),
    _checked_by(lambda text: step_references.check_condition(text, where="if")),
]


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
        fields = {name: getattr(self, name) for name in _SESSION_FIELDS if name != "steps"}
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


def _find_kind(step: object) -> str | None:
    kinds = [kind for kind in _KINDS if isinstance(step, dict) and kind in step]
    return _tag(kinds[0]) if len(kinds) == 1 else None


def _tag(kind: str) -> str:
    """A tag is part of the location of an error. It must not equal the name of a field."""
    return f"{kind} step"


SessionStep = Annotated[
    Annotated[PromptStep, Tag(_tag("prompt"))]
    | Annotated[ShellStep, Tag(_tag("shell"))]
    | Annotated[ExternalStep, Tag(_tag("external"))],
    Discriminator(
        _find_kind,
        custom_error_type="step_kind",
        custom_error_message="a step of a session must have exactly one of the fields prompt, shell and external",
    ),
]
PipelineStep = Annotated[
    Annotated[PromptStep, Tag(_tag("prompt"))]
    | Annotated[ShellStep, Tag(_tag("shell"))]
    | Annotated[ExternalStep, Tag(_tag("external"))]
    | Annotated[ParallelStep, Tag(_tag("parallel"))],
    Discriminator(
        _find_kind,
        custom_error_type="step_kind",
        custom_error_message="a step must have exactly one of the fields prompt, shell, external and parallel",
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

    def to_wire(self) -> list[dict[str, Any]]:
        return [step.to_wire() for step in self.steps]


def generate_schema() -> str:
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A pipeline file of `footplate queue run`",
        **{name: value for name, value in Pipeline.model_json_schema().items() if name != "title"},
    }
    return json.dumps(content, indent=2) + "\n"


def load_pipeline(path: Path, *, is_complete: bool = True) -> Pipeline:
    """Reads the file. With `is_complete`, references must name earlier steps of the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPipeline([f"{path}: cannot be read: {error}"]) from None
    return parse_pipeline(text, str(path), is_complete=is_complete)


def parse_pipeline(text: str, path: str, *, is_complete: bool = True) -> Pipeline:
    try:
        root = yaml.compose(text, Loader=_Loader)
        data = _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        place = _place(path, error.problem_mark or error.context_mark)
        raise InvalidPipeline([f"{place}: not valid YAML: {error.problem or error.context}"]) from None
    except yaml.YAMLError as error:
        raise InvalidPipeline([f"{path}: not valid YAML: {' '.join(str(error).split())}"]) from None
    if not isinstance(data, dict):
        place = _place(path, root.start_mark if root is not None else None)
        raise InvalidPipeline([f"{place}: a pipeline must be a mapping with the field steps"])
    try:
        pipeline = Pipeline.model_validate(data)
    except ValidationError as error:
        found = [(_find_mark(root, one), _describe(one)) for one in error.errors(include_url=False)]
        found.sort(key=lambda each: (each[0].line, each[0].column))
        raise InvalidPipeline([f"{_place(path, mark)}: {text}" for mark, text in found]) from None
    if is_complete and (unknown := [*_find_unknown_references(pipeline)]):
        raise InvalidPipeline(
            [f"{_place(path, _find_mark(root, {'loc': ('steps', number)}))}: {text}" for number, text in unknown]
        )
    return pipeline


def _find_unknown_references(pipeline: Pipeline) -> Iterator[tuple[int, str]]:
    """Yields the number of each step that refers to a step which is not before it, with the problem."""
    names: list[str] = []
    for number, step in enumerate(pipeline.steps):
        for reference in step_references.find_references(step.text, where="text"):
            if reference.step not in names:
                before = f"The steps before this one are {', '.join(names)}" if names else "No named step is before it"
                yield number, f"{reference.text} refers to no earlier step. {before}"
        names += [step.name] if step.name and step.name not in names else []


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # the library has no types
    """Refuses keys that appear twice, of which YAML would use the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} appears twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep=deep)


def _find_mark(root: Any, error: Any) -> Any:
    """Returns the place of the value that an error is about, or of the field if the field itself is wrong."""
    key, node = None, root
    for part in error["loc"]:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            key, node = None, node.value[part]
        elif isinstance(node, yaml.MappingNode):
            key, node = next(((key, value) for key, value in node.value if key.value == str(part)), (key, node))
    return (key if error.get("type") == "extra_forbidden" and key is not None else node).start_mark


def _place(path: str, mark: Any) -> str:
    return f"{path}:1:1" if mark is None else f"{path}:{mark.line + 1}:{mark.column + 1}"


def _noun(field: str) -> str:
    return "session" if field == "parallel" else "step"


def _fields_at(location: Sequence[Any]) -> Sequence[str]:
    """Returns the fields that may be at the place of an unknown one."""
    if len(location) == 1:
        return ("steps",)
    in_session = location[-3:-2] == ("parallel",)
    return _SESSION_FIELDS if in_session else _PARALLEL_FIELDS if _tag("parallel") in location else _FIELDS


def _describe(error: Any) -> str:
    field, kind, message = str(error["loc"][-1]), error["type"], str(error["msg"])
    if kind == "extra_forbidden":
        fields = _fields_at(error["loc"])
        close = difflib.get_close_matches(field, fields, 1)
        return f"there is no field {field}. " + (f"Did you mean {close[0]}?" if close else f"Use {', '.join(fields)}.")
    if kind == "value_error":
        text = message.removeprefix("Value error, ")
        is_field = isinstance(error["loc"][-1], str) and " " not in field
        return f"{field}: {text}" if is_field else text
    given = error.get("input")
    unknown = [str(name) for name in given if name not in _PARALLEL_FIELDS] if isinstance(given, dict) else []
    described = {
        "step_kind": f"there is no field {', '.join(unknown)}; {message}" if unknown else message,
        "missing": f"{field} is missing",
        "string_type": f"{field} must be text. Put the value into quotes",
        "string_pattern_mismatch": f"{field} must be a lower-case letter or an underscore, followed by lower-case "
        "letters, digits and underscores",
        "literal_error": f"{field} must be {error.get('ctx', {}).get('expected', '')}".replace("'", ""),
        "too_short": f"{field} must have at least one {_noun(field)}",
        "too_long": f"{field} can have at most {error.get('ctx', {}).get('max_length')} {_noun(field)}s",
    }
    return (
        described.get(kind) or f"{field} {message.replace('Input should', 'must', 1).replace('String should', 'must')}"
    )
