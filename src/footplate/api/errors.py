"""Every refusal and failure as the shared envelope, so that official SDKs raise their own typed exceptions.

`error.type` is one of the reference's closed set; what a person needs beyond it (a title, what to do, which field,
where to read on) travels in keys of our own.
"""

import math
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from footplate.api.replies import reply
from footplate.domain.errors import DOCS, FootplateError, Overloaded, RateLimited, Refused, Temporary
from footplate.domain.json import Json, JsonObject
from footplate.domain.limits import setting_of

ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    431: "invalid_request_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}
TITLES: Final = {
    400: "The request cannot be carried out as it stands",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not found",
    405: "That cannot be done here",
    408: "The request took too long",
    409: "It is in a state that does not allow this",
    413: "The request is too large",
    429: "Too many requests",
    431: "The headers are too large",
    500: "Something went wrong inside",
    503: "A part of the server does not answer",
    529: "Too busy",
}
_MAY_CHANGE: Final = frozenset({408, 429, 503, 529})
_RETRY_AFTER: Final = 1.0


class TooLarge(Refused):
    code = "request_too_large"
    status = 413

    def __init__(self, limit: int, setting: str) -> None:
        super().__init__(
            f"The request body is larger than {limit} bytes.",
            help_text=f"Send less at once, or upload content as a file. The server's {setting} changes the limit.",
        )


class LimitExceeded(Refused):
    """The client sends or holds more than a limit of the server allows; the text names the limit's setting."""

    code = "limit_exceeded"

    def __init__(self, status: int, limit: str, message: str, *, field: str | None = None) -> None:
        """`limit` is a field of `RequestLimits`."""
        help_text = f"The server's {setting_of(limit)} changes this limit."
        super().__init__(message, help_text=help_text, field=field)
        self.answer_status = status


class EncodedBody(Refused):
    """A compressed body could expand to any size, so none is accepted."""

    code = "unsupported_encoding"

    def __init__(self) -> None:
        super().__init__(
            "A compressed request body is not supported.",
            help_text="Send the body without `Content-Encoding`.",
            field="content-encoding",
        )


class MalformedRequest(Refused):
    code = "malformed_request"

    def __init__(self) -> None:
        super().__init__("The request is not valid HTTP/1.1.", help_text="Check the client, or a proxy in front of it.")


class Unknown(Refused):
    """A path, or a method on a path, that does not exist."""

    code = "unknown_route"

    def __init__(self, status: int, message: str, help_text: str) -> None:
        super().__init__(message, help_text=help_text)
        self.answer_status = status


def envelope(error: FootplateError, status: int, request_id: str) -> JsonObject:
    details: JsonObject = {"type": ERROR_TYPES[status], "message": error.message, "title": TITLES[status]}
    extra: dict[str, Json] = {"help": error.help_text, "field": error.fields.get("field")}
    details.update({key: value for key, value in extra.items() if value})
    details["docs"] = f"{DOCS}#{error.code}"
    if error_code := error.fields.get("error_code"):
        details["details"] = {"error_code": error_code}
    if conflicts := error.fields.get("conflicts"):
        details["conflicts"] = conflicts
    return {"type": "error", "error": details, "request_id": request_id}


def answer(error: FootplateError, request_id: str) -> Response:
    status = status_of(error)
    headers: dict[str, str] = {}
    if status in _MAY_CHANGE:
        wait = error.retry_after if isinstance(error, Temporary) and error.retry_after else _RETRY_AFTER
        headers = {"retry-after": str(max(1, math.ceil(wait))), "x-should-retry": "true"}
    elif status < HTTPStatus.INTERNAL_SERVER_ERROR:
        headers = {"x-should-retry": "false"}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    return reply(envelope(error, status, request_id), status=status, headers=headers)


def status_of(error: FootplateError) -> int:
    if isinstance(error, Unknown | LimitExceeded):
        return error.answer_status
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, RateLimited):
        return 429
    if isinstance(error, Overloaded):
        return 529
    return 503 if isinstance(error, Temporary) else 500


def internal(request_id: str) -> Response:
    """Says nothing of the cause: that is in the log, under the same id."""
    error = FootplateError(
        "The server failed to answer this request.",
        help_text="Try again. If it stays, give the request id to whoever runs this server.",
    )
    return answer(error, request_id)
