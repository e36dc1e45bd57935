"""Converts pydantic's validation errors into one sentence that names the field as the caller wrote it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from footplate.domain.errors import InvalidRequest

_MAX_SHOWN_ERRORS: Final = 3
_TAG_ERROR_TYPES: Final = frozenset({"union_tag_invalid", "union_tag_not_found"})
_REFERENCE_ERROR_CODES: Final = frozenset({"invalid_config_type_change"})
"""Error types of Footplate's validators for which the reference API defines an `error_code`."""

M = TypeVar("M", bound=BaseModel)


def validate(model: type[M], fields: Mapping[str, Any], *, ignore_unknown: bool) -> M:
    try:
        return model.model_validate(fields, extra="ignore" if ignore_unknown else None)
    except ValidationError as error:
        raise build_validation_error(error.errors(include_url=False), fields) from error


def build_validation_error(errors: Sequence[ErrorDetails], fields: Mapping[str, Any]) -> InvalidRequest:
    sentences = [f"{field_path(error, fields)}: {_reason(error)}" for error in errors[:_MAX_SHOWN_ERRORS]]
    if len(errors) > _MAX_SHOWN_ERRORS:
        sentences.append(f"and {len(errors) - _MAX_SHOWN_ERRORS} more")
    kind = errors[0]["type"]
    return InvalidRequest(
        "; ".join(sentences),
        field=field_path(errors[0], fields),
        help_text="Correct it and try again.",
        error_code=kind if kind in _REFERENCE_ERROR_CODES else None,
    )


def field_path(error: ErrorDetails, fields: Mapping[str, Any]) -> str:
    """Returns the field's path, such as `tools.0.configs.1.name`. Pydantic adds union tags to the path, which the
    caller never wrote; they are removed.
    """
    value: Any = fields
    path: list[str] = []
    last = len(error["loc"]) - 1
    for index, part in enumerate(error["loc"]):
        if isinstance(part, int) and isinstance(value, list):
            value = value[part]
        elif isinstance(value, Mapping) and (part in value or (index == last and error["type"] == "missing")):
            value = value.get(part)
        else:
            continue
        path.append(str(part))
    if error["type"] in _TAG_ERROR_TYPES and isinstance(value, Mapping):
        field = str(error.get("ctx", {}).get("discriminator", "")).strip("'")
        path.append(field if field.isidentifier() else "type")
    return ".".join(path)


def _reason(error: ErrorDetails) -> str:
    kind = error["type"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return "is not a known field"
    if kind == "missing":
        return "is required"
    if kind == "union_tag_invalid":
        return f"{context.get('tag')!r} is not supported here; expected one of {context.get('expected_tags')}"
    if kind == "union_tag_not_found":
        return "is required; it selects the type of the object"
    if kind == "value_error":
        return str(context.get("error", error["msg"]))
    return error["msg"][:1].lower() + error["msg"][1:]
