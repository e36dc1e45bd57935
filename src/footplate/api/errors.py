"""Builds the JSON error responses of the API, in the format that the official SDKs convert to typed exceptions.

`error.type` is one of the fixed types of the reference API (Anthropic's managed agents). Footplate adds fields for
people: a title, a help text, the name of the invalid field, and a link to the documentation.
"""

import math
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from footplate.api.wire.json_responses import json_response
from footplate.domain.errors import DOCS, FootplateError, Overloaded, RateLimited, Refused, Temporary
from footplate.domain.json import Json, JsonObject
from footplate.domain.network.request_limits import setting_name
from footplate.domain.organisations.limits import OrganisationLimitExceeded
from footplate.domain.organisations.sign_in import SignInLimitExceeded
from footplate.telemetry import metrics

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
    400: "Invalid request",
    401: "Authentication required",
    403: "Permission denied",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timeout",
    409: "Conflict with the current state",
    413: "Request too large",
    429: "Too many requests",
    431: "Request headers too large",
    500: "Internal server error",
    503: "Service unavailable",
    529: "Overloaded",
}
_RETRYABLE_STATUSES: Final = frozenset({408, 429, 503, 529})
_DEFAULT_RETRY_SECONDS: Final = 1.0


class TooLarge(Refused):
    code = "request_too_large"
    status = 413

    def __init__(self, limit: int, setting: str) -> None:
        super().__init__(
            f"The request body is larger than {limit} bytes.",
            help_text="Send less data at once, or upload the content as a file. "
            f"The operator can change this limit with {setting}.",
        )


class LimitExceeded(Refused):
    """The client sends or holds more than a server limit allows. The help text names the setting that changes the
    limit.
    """

    code = "limit_exceeded"

    def __init__(self, status: int, limit: str, message: str, *, field: str | None = None) -> None:
        """`limit` is the name of a field of `RequestLimits`."""
        help_text = f"The operator can change this limit with {setting_name(limit)}."
        super().__init__(message, help_text=help_text, field=field)
        self.response_status = status


class EncodedBody(Refused):
    """The request body is compressed. Compressed bodies are refused because they could expand to any size."""

    code = "unsupported_encoding"

    def __init__(self) -> None:
        super().__init__(
            "A compressed request body is not supported.",
            help_text="Send the body without `Content-Encoding`.",
            field="content-encoding",
        )


class DeliveryFailed(Refused):
    """A delivery to a trigger is valid, but could not start anything. The sender learns no details of the trigger."""

    code = "delivery_failed"
    status = 409

    def __init__(self) -> None:
        super().__init__(
            "The delivery was received, but could not start anything.",
            help_text="Members see the reason with `footplate triggers deliveries`. Send the delivery again, with the "
            "same `webhook-id`, when it is fixed.",
        )


class MalformedRequest(Refused):
    code = "malformed_request"

    def __init__(self) -> None:
        super().__init__(
            "The request is not valid HTTP/1.1.", help_text="Check the client and any proxy between it and the server."
        )


class UnknownRoute(Refused):
    """The path does not exist, or does not support the method."""

    code = "unknown_route"

    def __init__(self, status: int, message: str, help_text: str) -> None:
        super().__init__(message, help_text=help_text)
        self.response_status = status


def error_envelope(error: FootplateError, status: int, request_id: str) -> JsonObject:
    details: JsonObject = {"type": ERROR_TYPES[status], "message": error.message, "title": TITLES[status]}
    extra: dict[str, Json] = {"help": error.help_text, "field": error.fields.get("field")}
    details.update({key: value for key, value in extra.items() if value})
    details.update({"code": error.code, "docs": f"{DOCS}#{error.code}"})
    if error_code := error.fields.get("error_code"):
        details["details"] = {"error_code": error_code}
    if conflicts := error.fields.get("conflicts"):
        details["conflicts"] = conflicts
    return {"type": "error", "error": details, "request_id": request_id}


def error_response(error: FootplateError, request_id: str) -> Response:
    status = http_status(error)
    headers: dict[str, str] = {}
    if status in _RETRYABLE_STATUSES:
        wait = (
            error.retry_after
            if isinstance(error, Temporary | OrganisationLimitExceeded | SignInLimitExceeded)
            else None
        )
        should_retry = not isinstance(error, SignInLimitExceeded) and (
            not isinstance(error, OrganisationLimitExceeded) or error.should_retry
        )
        headers = {
            "retry-after": str(max(1, math.ceil(wait or _DEFAULT_RETRY_SECONDS))),
            "x-should-retry": "true" if should_retry else "false",
        }
    elif status < HTTPStatus.INTERNAL_SERVER_ERROR:
        headers = {"x-should-retry": "false"}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    return json_response(error_envelope(error, status, request_id), status=status, headers=headers)


def http_status(error: FootplateError) -> int:
    if isinstance(error, UnknownRoute | LimitExceeded):
        return error.response_status
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, RateLimited):
        return 429
    if isinstance(error, Overloaded):
        return 529
    return 503 if isinstance(error, Temporary) else 500


def count_refusal(error: FootplateError) -> None:
    if isinstance(error, OrganisationLimitExceeded):
        organisation = metrics.ORGANISATION_LABELS(error.limit.organisation)
        metrics.LIMIT_REFUSALS.labels(organisation, error.limit.name).inc()


def internal_error_response(request_id: str) -> Response:
    """Builds the response to an unexpected error. It hides the cause, which is in the server log under the same request
    id.
    """
    error = FootplateError(
        "The server could not process this request because of an internal error.",
        help_text="Try again. If the error persists, give the request ID to the operator of this server.",
    )
    return error_response(error, request_id)
