"""A provider's errors as ours: the class decides whether the engine tries again."""

from typing import Final, TypeAlias

from pydantic_ai import exceptions as pai

from footplate.domain.errors import FootplateError, ModelRefused, Overloaded, RateLimited, Temporary

_Rule: TypeAlias = "tuple[type[pai.ModelAPIError], type[Temporary | ModelRefused], str]"

_RULES: Final[tuple[_Rule, ...]] = (
    (pai.ModelRateLimitError, RateLimited, ""),
    (pai.ModelQuotaExceededError, ModelRefused, "The provider's account has no quota or credit left: top it up."),
    (pai.ModelUnavailableError, Overloaded, ""),
    (pai.ModelServerError, Overloaded, ""),
    (pai.ModelAuthenticationError, ModelRefused, "Check the provider's API key, and that it may use this model."),
    (pai.ModelNotFoundError, ModelRefused, "Check the agent's model name and the provider's base URL."),
    (
        pai.ModelContextWindowExceededError,
        ModelRefused,
        "The conversation is longer than this model can read: start a new session, or fork this one earlier.",
    ),
    (pai.ModelRequestRejectedError, ModelRefused, "Check the agent's model, parameters and tools."),
    (pai.ModelAPIError, Temporary, "The provider could not be reached, or its answer broke off."),
)
"""The first that fits counts: the special before the general."""

_TRY_AGAIN: Final = frozenset({408, 409, 425})
_SERVER_ERROR: Final = 500
_LENGTH: Final = 2000


def translate(error: Exception) -> FootplateError | None:
    """None for what is no fault of a provider: a defect of ours, which must look like one."""
    if isinstance(error, FootplateError):
        return error
    if isinstance(error, pai.ModelAPIError):
        return _of_provider(error)
    if isinstance(error, pai.UnexpectedModelBehavior):
        return Temporary(f"The model's answer could not be read: {error}")
    if isinstance(error, pai.UserError):
        return ModelRefused(str(error), help_text="This model does not take what the agent or the session uses.")
    return None


def cut_stream() -> Temporary:
    return Temporary("The model's answer ended before it was complete.")


def _of_provider(error: pai.ModelAPIError) -> FootplateError:
    kind, help_text = next((ours, text) for theirs, ours, text in _RULES if isinstance(error, theirs))
    if isinstance(error, pai.ModelHTTPError) and kind is Temporary and _final(error.status_code):
        kind, help_text = ModelRefused, "Check the agent's model, parameters and tools."
    if issubclass(kind, Temporary):
        return kind(_text(error), retry_after=error.retry_after, help_text=help_text)
    return kind(_text(error), help_text=help_text)


def _final(status: int) -> bool:
    return status < _SERVER_ERROR and status not in _TRY_AGAIN


def _text(error: pai.ModelAPIError) -> str:
    """What the provider said, without the rest of its body: that can be long and hold the request."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, dict) else None
    said = inner.get("message") if isinstance(inner, dict) else None
    status = f" ({error.status_code})" if isinstance(error, pai.ModelHTTPError) else ""
    return f"The model request failed{status}: {said or error.message}"[:_LENGTH]
