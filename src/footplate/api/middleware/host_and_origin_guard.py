"""Middleware that rejects requests with an unknown `Host` header or from web pages of other origins. The error response
has the same format as all other API errors.
"""

from typing import Final

from footplate.api import errors
from footplate.domain.network.host_and_origin_check import ForeignRequest, GuardedApp, Scope

_API_PREFIX: Final = "/v1/"
_LINKED_API_PATHS: Final = frozenset({"/v1/sign_in/oidc", "/v1/sign_in/oidc/callback"})
"""The identity provider sends the browser to the second one."""


class ForeignRequestMiddleware(GuardedApp):
    def allows_links(self, scope: Scope) -> bool:
        path: str = scope["path"]
        is_page = not path.startswith(_API_PREFIX) or path in _LINKED_API_PATHS
        return scope["type"] == "http" and scope["method"] == "GET" and is_page

    def build_response(self, error: ForeignRequest, scope: Scope) -> tuple[list[tuple[bytes, bytes]], bytes]:
        response = errors.error_response(error, scope["request_id"])
        headers = [(name, value) for name, value in response.raw_headers if name != b"content-length"]
        return headers, bytes(response.body)
