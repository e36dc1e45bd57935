"""The hierarchy of errors. The class of an error decides how it is handled; no code compares message texts.

FootplateError
├── Refused                the request cannot be carried out as it is; a retry would not help
│   ├── InvalidRequest     400, names the field
│   ├── Unauthenticated    401
│   ├── Forbidden          403
│   ├── NotFound           404, also for objects of another organisation
│   └── Conflict           409
├── Temporary              the engine retries with increasing delays
│   ├── RateLimited        the model provider's rate limit; may say when to retry
│   ├── Overloaded         the model provider is overloaded
│   └── Unavailable        one of our own services (database, engine, live stream) does not respond
├── Permanent              the turn fails and is not retried
│   ├── ModelRefused       the provider rejected the request: credentials, model name, size
│   └── PromptBlocked      a hook blocked the prompt
├── HandOver               the worker is stopping; another worker continues the turn from its safe point
└── Fenced                 another worker holds the session; stop immediately and write nothing
"""

from typing import ClassVar, Final

from footplate.domain.json import JsonObject

DOCS: Final = "docs/errors.md"


class FootplateError(Exception):
    """An error that a person may see: what happened, why, and what to do next."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, help_text: str = "", **fields: str | float | None) -> None:
        super().__init__(message)
        self.message = message
        self.help_text = help_text
        self.fields: JsonObject = dict(fields)

    @property
    def advice(self) -> str:
        """The message followed by the help text."""
        return f"{self.message} {self.help_text}".rstrip()


class Refused(FootplateError):
    code = "refused"
    status: ClassVar[int] = 400


class InvalidRequest(Refused):
    code = "invalid_request"

    def __init__(
        self, message: str, *, field: str | None = None, help_text: str = "", error_code: str | None = None
    ) -> None:
        """`error_code` is the reference API's name for the cause, if any; its SDKs map it to an exception class."""
        super().__init__(message, help_text=help_text, field=field, error_code=error_code)


class Unauthenticated(Refused):
    code = "unauthenticated"
    status = 401


class Forbidden(Refused):
    code = "forbidden"
    status = 403


class NotFound(Refused):
    code = "not_found"
    status = 404

    def __init__(self, noun: str, item_id: str) -> None:
        super().__init__(
            f"There is no {noun} {item_id!r}.",
            help_text=f"Check the ID, and check that the API key belongs to the organisation that owns the {noun}.",
        )


class Conflict(Refused):
    code = "conflict"
    status = 409


class Temporary(FootplateError):
    code = "temporary"
    retryable = True
    session_error: ClassVar[str] = "unknown_error"
    """The reference API's name for this error in a `session.error` event."""

    def __init__(self, message: str, *, retry_after: float | None = None, help_text: str = "") -> None:
        super().__init__(message, help_text=help_text, retry_after=retry_after)
        self.retry_after = retry_after


class RateLimited(Temporary):
    code = "rate_limited"
    session_error = "model_rate_limited_error"


class Overloaded(Temporary):
    code = "overloaded"
    session_error = "model_overloaded_error"


class Unavailable(Temporary):
    code = "unavailable"


class Permanent(FootplateError):
    code = "permanent"
    session_error: ClassVar[str] = "unknown_error"


class ModelRefused(Permanent):
    code = "model_refused"
    session_error = "model_request_failed_error"


class PromptBlocked(Permanent):
    """A hook blocked the prompt, which is therefore not in the conversation."""

    code = "prompt_blocked"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"A hook blocked this prompt: {reason}",
            help_text="The prompt was not sent to the model. Send another message, or ask the author of the hook.",
        )


class HandOver(FootplateError):
    """Raised by a harness that was asked to hand over its turn, at a point from which another process can continue."""

    code = "hand_over"

    def __init__(self) -> None:
        super().__init__("The worker is stopping; another worker continues the turn.")


class Fenced(FootplateError):
    """This worker's epoch is outdated: another worker has claimed the session."""

    code = "fenced"
