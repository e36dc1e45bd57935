"""Judges answers by the official SDK's own models, without the leniency that its client has."""

from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter

T = TypeVar("T", bound=BaseModel)


def strictly(model: type[T], body: Any) -> T:
    """No required field missing, no foreign literal, no union member guessed.

    The client builds its objects without validating; plain pydantic does not.
    """
    return TypeAdapter(model).validate_python(body)
