"""Converts the errors of a model provider to Footplate's errors.

The class of the error decides whether the engine retries the turn.
"""

from typing import Final, TypeAlias

from pydantic_ai import exceptions as pai

from footplate.domain.errors import FootplateError, ModelRefused, Overloaded, RateLimited, Temporary
from footplate.harness import turn_outcome_factories

_Rule: TypeAlias = "tuple[type[pai.ModelAPIError], type[Temporary | ModelRefused], str]"

_RULES: Final[tuple[_Rule, ...]] = (
    (pai.ModelRateLimitError, RateLimited, ""),
    (pai.ModelQuotaExceededError, ModelRefused, "The provider account has no quota or credit left. Add credit."),
    (pai.ModelUnavailableError, Overloaded, ""),
    (pai.ModelServerError, Overloaded, ""),
    (pai.ModelAuthenticationError, ModelRefused, "Check the provider's API key, and that it may use this model."),
    (pai.ModelNotFoundError, ModelRefused, "Check the agent's model name and the provider's base URL."),
    (
        pai.ModelContextWindowExceededError,
        ModelRefused,
        "The conversation exceeds this model's context window. Start a new session, or fork this one earlier.",
    ),
    (pai.ModelRequestRejectedError, ModelRefused, "Check the agent's model, parameters and tools."),
    (pai.ModelAPIError, Temporary, "The provider could not be reached, or the connection was lost."),
)
"""The first matching rule applies, so subclasses come before their parents."""

_RETRYABLE_STATUSES: Final = frozenset({408, 409, 425})
_SERVER_ERROR: Final = 500


def translate(error: Exception) -> FootplateError | None:
    """The Footplate error, or None if the exception is a bug in Footplate and must be reported as one."""
    if isinstance(error, FootplateError):
        return error
    if isinstance(error, pai.ModelAPIError):
        return _translate_provider_error(error)
    if isinstance(error, pai.UnexpectedModelBehavior):
        return Temporary(f"The model's response could not be parsed: {error}")
    if isinstance(error, pai.UserError):
        return ModelRefused(
            str(error), help_text="This model does not support a feature that the agent or session uses."
        )
    return None


def incomplete_stream_error() -> Temporary:
    return Temporary("The model's response ended before it was complete.")


def _translate_provider_error(error: pai.ModelAPIError) -> FootplateError:
    kind, help_text = next((ours, text) for theirs, ours, text in _RULES if isinstance(error, theirs))
    if isinstance(error, pai.ModelHTTPError) and kind is Temporary and _is_final(error.status_code):
        kind, help_text = ModelRefused, "Check the agent's model, parameters and tools."
    if issubclass(kind, Temporary):
        return kind(_error_text(error), retry_after=error.retry_after, help_text=help_text)
    return kind(_error_text(error), help_text=help_text)


def _is_final(status: int) -> bool:
    return status < _SERVER_ERROR and status not in _RETRYABLE_STATUSES


def _error_text(error: pai.ModelAPIError) -> str:
    """The provider's message, without the rest of the response body, which can be long and contain the request."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else None
    status = error.status_code if isinstance(error, pai.ModelHTTPError) else None
    return turn_outcome_factories.describe_failure(status, str(message or error.message), source="The provider")
