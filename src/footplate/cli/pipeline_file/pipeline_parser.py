"""Reads a pipeline file: steps for a session's queue, in YAML. Each error names the line and column.

The whole file is checked before a session is created.
"""

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from footplate.cli.pipeline_file.pipeline_models import (
    DELIVERY_OPTIONS,
    PARALLEL_FIELDS,
    SESSION_FIELDS,
    STEP_FIELDS,
    WITH_PAYLOAD,
    ParallelStep,
    Pipeline,
    tag,
)
from footplate.domain.sessions import step_references


class InvalidPipeline(Exception):
    """The file cannot be used. Each problem is a line that starts with its place in the file."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))


def load_pipeline(path: Path, *, is_complete: bool = True, with_payload: bool = False) -> Pipeline:
    """Reads the file, or stdin for `-`. With `is_complete`, references must name earlier steps of the file. With
    `with_payload`, commands can have references to the payload of a trigger.
    """
    name = "stdin" if str(path) == "-" else str(path)
    try:
        text = sys.stdin.read() if name == "stdin" else path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidPipeline([f"{name}: cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise InvalidPipeline([f"{name}: cannot be read: it is not UTF-8 text"]) from None
    return parse_pipeline(text, name, is_complete=is_complete, with_payload=with_payload)


def parse_pipeline(text: str, path: str, *, is_complete: bool = True, with_payload: bool = False) -> Pipeline:
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
        pipeline = Pipeline.model_validate(data, context={WITH_PAYLOAD: with_payload})
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
    """Yields the number of each step that refers to a step which is not before it, or to a session which that step does
    not have, with the problem.
    """
    earlier: dict[str, list[dict[str, Any]]] = {}
    """The sessions of each named step."""
    for number, step in enumerate(pipeline.steps):
        for reference in step_references.find_references(step.text, where="text"):
            if (sessions := earlier.get(reference.step)) is None:
                before = (
                    f"The steps before this one are {', '.join(earlier)}" if earlier else "No named step is before it"
                )
                yield number, f"{reference.text} refers to no earlier step. {before}"
            elif reference.session and step_references.find_session(sessions, reference.session) is None:
                yield number, f"{reference.text} refers to a session that the step {reference.step} does not have"
        if step.name:
            earlier[step.name] = [{"name": one.name} for one in step.parallel] if isinstance(step, ParallelStep) else []


class _Loader(yaml.SafeLoader):
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
    if DELIVERY_OPTIONS in location:
        return ("into" if tag("merge") in location else "branch", "message", "project")
    in_session = location[-3:-2] == ("parallel",)
    return SESSION_FIELDS if in_session else PARALLEL_FIELDS if tag("parallel") in location else STEP_FIELDS


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
    unknown = [str(name) for name in given if name not in PARALLEL_FIELDS] if isinstance(given, dict) else []
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
