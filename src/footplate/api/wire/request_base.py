"""Base classes and field types of the request models. The models reject unknown fields.

Some fields of the reference API (Anthropic's managed agents) are not supported by this server. Their type accepts only
null or an empty list, so the error calls the field unsupported instead of unknown.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    Strict,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject

UNSUPPORTED: Final = "unsupported"
MAX_METADATA: Final = 16
MAX_CONTEXT: Final = 32 * 1024
MAX_INTEGER: Final = 2**31 - 1


class Body(BaseModel):
    """Base of request bodies and their parts. Validation is strict: a string is not accepted as a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Parameters(BaseModel):
    """Base of query strings. All values arrive as text and are converted."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _refuse_any_value(value: object) -> None:
    if value is not None:
        raise PydanticCustomError(UNSUPPORTED, "is not supported by this server")


def _refuse_non_empty(value: object) -> object:
    if value is None or value == []:
        return None
    raise PydanticCustomError(UNSUPPORTED, "is not supported by this server; omit it or leave it empty")


Unsupported = Annotated[
    None,
    BeforeValidator(_refuse_any_value),
    Field(description="Not supported by this server. Must be null or omitted."),
]
UnsupportedList = Annotated[
    list[JsonValue] | None,
    BeforeValidator(_refuse_non_empty),
    Field(description="Not supported by this server. Must be empty, null or omitted."),
]


def _to_utc(value: datetime) -> datetime:
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    try:
        return aware.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("must be a time between the years 1 and 9999 in UTC") from error


def _require_time_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be a time in RFC 3339 format, such as 2026-11-16T08:00:00Z")  # noqa: TRY004 - as pydantic wants it
    return value


def _refuse_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _check_context_size(context: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(json.dumps(context)) > MAX_CONTEXT:
        raise ValueError(f"must not be larger than {MAX_CONTEXT} bytes as JSON")
    return context


Context = Annotated[
    dict[str, JsonValue],
    AfterValidator(_check_context_size),
    Field(description="Passed as JSON to every command of the turn, in the variable FOOTPLATE_CONTEXT."),
]
UtcTime = Annotated[datetime, AfterValidator(_to_utc)]
JsonTime = Annotated[UtcTime, Strict(False), BeforeValidator(_require_time_text)]
"""A time, sent as a JSON string. Strict validation would otherwise reject the string."""
Text = Annotated[str, AfterValidator(_refuse_nul)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(_refuse_nul)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_refuse_nul)]
Version = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
MetadataKey = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_refuse_nul)]
MetadataValue = Annotated[str, StringConstraints(max_length=512), AfterValidator(_refuse_nul)]
Metadata = Annotated[dict[MetadataKey, MetadataValue], Field(max_length=MAX_METADATA)]
MetadataPatch = dict[MetadataKey, MetadataValue | None]


def _without_default(schema: JsonObject) -> None:
    schema.pop("default", None)


NOT_NULLABLE: Any = Field(default="", json_schema_extra=_without_default)
"""The default of a field that can be omitted but must not be null."""


def merge_metadata(metadata: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    """Sets keys that have a value, removes keys that are null, and keeps all others."""
    merged = {key: value for key, value in {**metadata, **patch}.items() if value is not None}
    if len(merged) > MAX_METADATA:
        raise InvalidRequest(f"metadata: must have at most {MAX_METADATA} pairs", field="metadata")
    return merged


def timestamp(time: datetime) -> str:
    """Formats a time as RFC 3339 in UTC, with a Z."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def optional_timestamp(time: datetime | None) -> str | None:
    return timestamp(time) if time is not None else None


def dump_sent_fields(model: BaseModel) -> JsonObject:
    """Returns the fields that the caller sent, as plain JSON."""
    fields: dict[str, Any] = model.model_dump(exclude_unset=True)
    return fields
