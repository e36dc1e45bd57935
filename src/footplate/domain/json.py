"""Types for JSON values, and functions that read a value of unknown type or clean it for a JSONB column.

PostgreSQL's JSONB rejects NUL and lone surrogates, and the output of a tool may contain both. These characters are
replaced by a visible character. Callers that need the exact bytes must store them in the object store.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]

_REPLACEMENT: Final = "\ufffd"


def clean_text(text: str) -> str:
    """Replace NUL and lone surrogates, which JSONB and UTF-8 reject."""
    if "\x00" in text:
        text = text.replace("\x00", _REPLACEMENT)
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if _has_surrogate(text) else text


def clean(value: Json) -> Json:
    """Clean every string inside a JSON value, keys included."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, dict):
        return clean_object(value)
    return value


def clean_object(value: Mapping[str, Json]) -> JsonObject:
    return {clean_text(key): clean(item) for key, item in value.items()}


def as_object(value: object) -> JsonObject:
    """Return the value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def as_objects(value: object) -> list[JsonObject]:
    """Return the objects in the value, if it is a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
