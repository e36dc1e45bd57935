"""Refuses requests for unknown hosts and from web pages of other origins, with the API's error response."""

from footplate.api import errors
from footplate.domain.network.request_guard import ForeignRequest, GuardedApp, Scope


class ForeignRequestMiddleware(GuardedApp):
    def build_response(self, error: ForeignRequest, scope: Scope) -> tuple[list[tuple[bytes, bytes]], bytes]:
        response = errors.error_response(error, scope["request_id"])
        headers = [(name, value) for name, value in response.raw_headers if name != b"content-length"]
        return headers, bytes(response.body)
