"""What all request models share: unknown fields are refused, and known ones that nobody enforces as well.

A field that is accepted is enforced. So a field of the reference that has no effect here yet is declared with
`Refused` or `OnlyEmpty`: the answer then names it, instead of calling it unknown or, worse, ignoring it.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, StringConstraints
from pydantic_core import PydanticCustomError

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject

UNSUPPORTED: Final = "unsupported"
MAX_METADATA: Final = 16
MAX_CONTEXT: Final = 32 * 1024
MAX_INTEGER: Final = 2**31 - 1


class Body(BaseModel):
    """Part of a request body. Strict: a number in quotes is not a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Parameters(BaseModel):
    """A query string. Everything arrives as text, so the values are converted."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _refuse_all(value: object) -> None:
    if value is not None:
        raise PydanticCustomError(UNSUPPORTED, "is not supported by this server")


def _refuse_content(value: object) -> object:
    if value is None or value == []:
        return None
    raise PydanticCustomError(UNSUPPORTED, "is not supported by this server; leave it out or empty")


Refused = Annotated[
    None, BeforeValidator(_refuse_all), Field(description="Known, but not supported: anything but null is refused.")
]
OnlyEmpty = Annotated[
    list[JsonValue] | None,
    BeforeValidator(_refuse_content),
    Field(description="Known, but not supported: anything but an empty list is refused."),
]


def _utc(moment: datetime) -> datetime:
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    try:
        return aware.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is out of range") from error


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain NUL")
    return text


def _small(context: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(json.dumps(context)) > MAX_CONTEXT:
        raise ValueError(f"must not take more than {MAX_CONTEXT} bytes as JSON")
    return context


Context = Annotated[
    dict[str, JsonValue],
    AfterValidator(_small),
    Field(description="Given to every command of the turn as FOOTPLATE_CONTEXT, in JSON."),
]
Moment = Annotated[datetime, AfterValidator(_utc)]
Text = Annotated[str, AfterValidator(_plain)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(_plain)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_plain)]
Version = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
MetadataKey = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_plain)]
MetadataValue = Annotated[str, StringConstraints(max_length=512), AfterValidator(_plain)]
Metadata = Annotated[dict[MetadataKey, MetadataValue], Field(max_length=MAX_METADATA)]
MetadataPatch = dict[MetadataKey, MetadataValue | None]


def _without_default(schema: JsonObject) -> None:
    schema.pop("default", None)


KEPT: Any = Field(default="", json_schema_extra=_without_default)
"""Of a field that may be left out but not be null: it cannot be cleared."""


def patched(metadata: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    """Set the keys that have a value, drop those that are null, keep the others."""
    merged = {key: value for key, value in {**metadata, **patch}.items() if value is not None}
    if len(merged) > MAX_METADATA:
        raise InvalidRequest(f"metadata: at most {MAX_METADATA} pairs are kept for one object", field="metadata")
    return merged


def timestamp(moment: datetime) -> str:
    """RFC 3339, in UTC, with a Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def optional_timestamp(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment is not None else None


def dumped(model: BaseModel) -> JsonObject:
    """The fields that the caller really sent, as plain JSON."""
    fields: dict[str, Any] = model.model_dump(exclude_unset=True)
    return fields
