"""Middleware that rejects requests with an unknown `Host` header or from web pages of other origins. The error response
has the same format as all other API errors.
"""

from footplate.api import errors
from footplate.domain.network.host_and_origin_check import ForeignRequest, GuardedApp, Scope


class ForeignRequestMiddleware(GuardedApp):
    def build_response(self, error: ForeignRequest, scope: Scope) -> tuple[list[tuple[bytes, bytes]], bytes]:
        response = errors.error_response(error, scope["request_id"])
        headers = [(name, value) for name, value in response.raw_headers if name != b"content-length"]
        return headers, bytes(response.body)
