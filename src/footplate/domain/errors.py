"""The error tree. A class decides what happens next; nobody matches on message text.

FootplateError
├── Refused                the caller's request cannot be done as it stands; asking again changes nothing
│   ├── InvalidRequest     400, names the field
│   ├── Unauthenticated    401
│   ├── Forbidden          403
│   ├── NotFound           404, also for what belongs to another organisation
│   └── Conflict           409
├── Temporary              the engine tries again, with growing waits
│   ├── RateLimited        of the model's provider; knows when to come back
│   ├── Overloaded         of the model's provider
│   └── Unavailable        a part of our own (database, engine, live stream) does not answer
├── Permanent              the turn fails now and is not tried again
│   ├── ModelRefused       the provider rejected the request: credentials, model name, size
│   └── PromptBlocked      a hook does not let the prompt through
├── HandOver               the worker stops: the turn goes on elsewhere, from the safe point that it is at
└── Fenced                 another worker holds the session; stop at once and write nothing
"""

from typing import ClassVar, Final

from footplate.domain.json import JsonObject

DOCS: Final = "docs/errors.md"


class FootplateError(Exception):
    """Something a person may see: what happened, why, and what to do next."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, help_text: str = "", **fields: str | float | None) -> None:
        super().__init__(message)
        self.message = message
        self.help_text = help_text
        self.fields: JsonObject = dict(fields)

    @property
    def advice(self) -> str:
        """What happened and what to do next, in one text."""
        return f"{self.message} {self.help_text}".rstrip()


class Refused(FootplateError):
    code = "refused"
    status: ClassVar[int] = 400


class InvalidRequest(Refused):
    code = "invalid_request"

    def __init__(
        self, message: str, *, field: str | None = None, help_text: str = "", error_code: str | None = None
    ) -> None:
        """`error_code` is the reference's name for the cause, where it has one: its SDKs raise a class of its own."""
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
            help_text=f"Check the id, and that the API key belongs to the organisation that owns the {noun}.",
        )


class Conflict(Refused):
    code = "conflict"
    status = 409


class Temporary(FootplateError):
    code = "temporary"
    retryable = True
    session_error: ClassVar[str] = "unknown_error"
    """The reference's name for it in a `session.error` event."""

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
    """A hook does not let the prompt through; the conversation does not have it."""

    code = "prompt_blocked"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"A hook does not let this prompt through: {reason}",
            help_text="The model has not seen it. Send another, or ask whoever wrote the hook.",
        )


class HandOver(FootplateError):
    """Raised by a harness that was asked to hand its turn over, at a point from which another process can go on."""

    code = "hand_over"

    def __init__(self) -> None:
        super().__init__("The worker is stopping; another takes the turn.")


class Fenced(FootplateError):
    """The epoch of this writer is not the session's any more."""

    code = "fenced"
