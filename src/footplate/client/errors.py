"""The client's exceptions. Each has a `message` and, where known, a `help` text that says how to continue.

ClientError
├── Unreachable           the server does not respond, or stopped responding
├── StreamLost            a stream broke at an unknown position, so it cannot resume without a gap
└── ApiError              the server returned an error; docs/errors.md explains each `code`
    ├── InvalidRequest    400, 405, 413; `field` names the invalid field, if there is one
    ├── Unauthenticated   401
    ├── Forbidden         403
    ├── NotFound          404
    ├── Conflict          409
    ├── RateLimited       429
    ├── Busy              502, 503, 504, 529; retried until `patience` runs out
    └── ServerFailed      any other 5xx
"""

from collections.abc import Mapping
from typing import Any, Final

from footplate.client.response_models import FileConflict


class ClientError(Exception):
    code: str = "client_error"
    title: str = "Client error"

    def __init__(self, message: str, *, help_text: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help_text


class Unreachable(ClientError):
    code = "unreachable"
    title = "Server unreachable"


class StreamLost(ClientError):
    code = "stream_lost"
    title = "Event stream lost"


class ApiError(ClientError):
    """An error response from the server. `retryable`: whether the same request may succeed a little later."""

    retryable: bool = False

    def __init__(
        self, status: int, body: Mapping[str, Any], *, retry_after: float | None = None, should_retry: bool = True
    ) -> None:
        """`should_retry`: False if the server has asked not to retry."""
        error = body.get("error")
        details: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
        super().__init__(
            str(details.get("message") or f"The server returned status {status}."),
            help_text=str(details.get("help") or ""),
        )
        self.status = status
        self.type = str(details.get("type") or "")
        self.title = str(details.get("title") or self.title)
        self.docs = str(details.get("docs") or "")
        self.code = str(details.get("code") or "") or self.docs.partition("#")[2] or self.type or f"status_{status}"
        self.field: str | None = details.get("field")
        self.conflicts = [FileConflict.model_validate(one) for one in details.get("conflicts") or []]
        """For a merge: each conflicting file, with the reason."""
        self.request_id: str | None = body.get("request_id")
        self.retry_after = retry_after
        self.retryable = self.retryable and should_retry


class InvalidRequest(ApiError): ...


class Unauthenticated(ApiError): ...


class Forbidden(ApiError): ...


class NotFound(ApiError): ...


class Conflict(ApiError): ...


class RateLimited(ApiError):
    retryable = True


class Busy(ApiError):
    retryable = True


class ServerFailed(ApiError): ...


_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
    502: Busy,
    503: Busy,
    504: Busy,
    529: Busy,
}
_FIRST_SERVER_ERROR: Final = 500


def error_for_status(
    status: int, body: Mapping[str, Any], *, retry_after: float | None = None, should_retry: bool = True
) -> ApiError:
    error_type = _BY_STATUS.get(status) or (ServerFailed if status >= _FIRST_SERVER_ERROR else InvalidRequest)
    return error_type(status, body, retry_after=retry_after, should_retry=should_retry)
