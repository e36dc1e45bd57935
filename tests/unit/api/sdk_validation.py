"""Validates responses with the official SDK's models, more strictly than the SDK's client does."""

from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter

T = TypeVar("T", bound=BaseModel)


def validate_strictly(model: type[T], body: Any) -> T:
    """Validates that no required field is missing, no literal is unknown and no union member is guessed.

    The SDK's client builds its objects without validation.
    """
    return TypeAdapter(model).validate_python(body)
