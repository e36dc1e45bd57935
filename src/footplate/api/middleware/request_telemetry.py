"""Records the metrics and the trace span of one request, and adds the request's ids to log lines.

The measured duration and the span end when the response starts, because a stream may stay open for days.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

import structlog
from prometheus_client import Counter, Histogram
from starlette.types import Scope

from footplate.telemetry import metrics, traces
from footplate.telemetry.traces import Attributes, Span

CLIENT_CLOSED_REQUEST: Final = 499
"""Status recorded for a client that disconnected before the response started. It is never sent."""
UNMATCHED: Final = "unmatched"
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_UNTRACED_PATHS: Final = frozenset({"/livez", "/readyz"})
"""Polled every few seconds by machines: counted in metrics, but not traced."""
_SESSION_PATH_PREFIX: Final = "/v1/sessions/"
_SERVER_ERROR: Final = 500


class RequestTelemetry:
    def __init__(self, scope: Scope, request_id: str) -> None:
        self._scope = scope
        self._request_id = request_id
        self._started_at = time.perf_counter()
        self._method = scope["method"] if scope["method"] in _METHODS else metrics.OTHER
        self._is_recorded = False
        self._span: Span = traces.NO_SPAN
        if traces.is_enabled() and scope["path"] not in _UNTRACED_PATHS:
            self._span = traces.start_span(self._method, self._attributes(), kind="server", parent=_traceparent(scope))

    @contextmanager
    def bind_context(self) -> Iterator[None]:
        """Adds the request's ids to log lines, and makes its span the current one, while the block runs."""
        ids = {"request_id": self._request_id}
        if session := _session_id_in_path(self._scope["path"]):
            ids["session"] = session
        bound = structlog.contextvars.bind_contextvars(**ids)
        try:
            with self._span.make_current():
                yield
        finally:
            structlog.contextvars.reset_contextvars(**bound)
            structlog.contextvars.unbind_contextvars("principal")
            if not self._is_recorded:
                self.record_response(CLIENT_CLOSED_REQUEST)

    def record_response(self, status: int) -> None:
        self._is_recorded = True
        # The router sets the route template. The path itself contains ids and must not become a label.
        route: str = getattr(self._scope.get("route"), "path", UNMATCHED)
        requests, seconds = _metric_series(self._method, route, status)
        requests.inc()
        seconds.observe(time.perf_counter() - self._started_at)
        if self._span is traces.NO_SPAN:
            return
        self._span.rename(f"{self._method} {route}")
        self._span.set_attributes({"http.route": route, "http.response.status_code": status})
        if (principal := self._scope.get("state", {}).get("principal")) is not None:
            self._span.set_attributes({"enduser.id": principal.id})
        if status >= _SERVER_ERROR:
            self._span.set_error(str(status))
        self._span.end()

    def _attributes(self) -> Attributes:
        return {
            "http.request.method": self._method,
            "url.path": self._scope["path"],
            "url.scheme": self._scope.get("scheme", "http"),
            "footplate.request_id": self._request_id,
        }


@cache
def _metric_series(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    """Caches the metric series: a lookup by labels costs more than counting. The number of series is bounded by the
    number of routes.
    """
    return metrics.HTTP_REQUESTS.labels(method, route, str(status)), metrics.HTTP_SECONDS.labels(method, route)


def _session_id_in_path(path: str) -> str | None:
    if not path.startswith(_SESSION_PATH_PREFIX):
        return None
    return path[len(_SESSION_PATH_PREFIX) :].partition("/")[0] or None


def _traceparent(scope: Scope) -> str | None:
    header = traces.TRACEPARENT_HEADER.encode()
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == header), None)
