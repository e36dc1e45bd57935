"""Describes a failed model request. The text of the provider is quoted, so that it cannot be mistaken for ours."""

from typing import Final

_MAX_LENGTH: Final = 1900


def describe_failure(status: int | None, text: str, *, source: str) -> str:
    """`source`: who wrote the text, such as `The provider`."""
    status_text = f" ({status})" if status else ""
    return f'The model request failed{status_text}. {source} said: "{text.strip()[:_MAX_LENGTH]}".'
