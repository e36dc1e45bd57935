"""Encodes errors and token counts for the two OpenAI formats, Chat Completions and Responses."""

from typing import Final

from footplate.domain.json import JsonObject
from footplate.testing import reply_steps as s

_INVALID: Final = "invalid_request_error"
_ERRORS: Final[dict[int, tuple[str, str | None]]] = {
    401: (_INVALID, "invalid_api_key"),
    404: (_INVALID, "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("service_unavailable_error", "server_is_overloaded"),
    529: ("service_unavailable_error", "server_is_overloaded"),
}
"""Error type and code by status. OpenAI never sends 529; in a script it means overload in every format."""
_SERVER_ERROR: Final = 500


def error_object(error: s.HttpError) -> JsonObject:
    """Returns the error object. A type from the script is also used as the code, because clients check either."""
    default = (_INVALID, None) if error.http_error < _SERVER_ERROR else ("server_error", "server_error")
    error_type, code = (error.type, error.type) if error.type else _ERRORS.get(error.http_error, default)
    return {"message": error.message, "type": error_type, "param": None, "code": code}


def error_body(error: s.HttpError, request_id: str) -> JsonObject:  # noqa: ARG001 - the request id is only in a header
    return {"error": error_object(error)}


def input_tokens(tokens: s.Tokens) -> int:
    """Returns the input tokens including cached tokens, as OpenAI counts them. Scripts count them separately."""
    return tokens.input_tokens + tokens.cache_read_input_tokens + tokens.cache_creation_input_tokens


def input_details(tokens: s.Tokens) -> dict[str, int]:
    return {"cached_tokens": tokens.cache_read_input_tokens, "cache_write_tokens": tokens.cache_creation_input_tokens}


def total_tokens(tokens: s.Tokens) -> int:
    return input_tokens(tokens) + tokens.output_tokens
