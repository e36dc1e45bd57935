"""Reports unexpected exceptions to an OTLP endpoint, to Sentry, or to both.

Every log line of level error with an exception is reported, so other code need not call this module. A report contains
the exception, its stack without variables, and the ids of the log line. Text that looks like a credential is removed.
"""

import sys
from typing import TYPE_CHECKING, Final

import structlog
from structlog.typing import EventDict, WrappedLogger

from footplate.telemetry import traces
from footplate.telemetry.secret_scrubbing import scrub_secrets

if TYPE_CHECKING:
    from sentry_sdk.types import Event, Hint

REPORTED_IDS: Final = ("action", "request_id", "organisation", "session", "turn", "attempt")
_ERROR_LEVELS: Final = frozenset({"error", "exception", "critical"})
_FLUSH_SECONDS: Final = 2.0

_sentry_enabled = False
log = structlog.get_logger(__name__)


def start_sentry(dsn: str, service: str, version: str) -> None:
    global _sentry_enabled  # noqa: PLW0603 - one per process
    try:
        import sentry_sdk
    except ImportError:
        log.warning(
            "SENTRY_DSN is set, but the Sentry SDK is missing. Run: pip install 'footplate[sentry]'",
            action="errors.no_sentry",
        )
        return
    sentry_sdk.init(
        dsn=dsn,
        release=f"footplate@{version}",
        # No automatic integrations: they would read requests and patch libraries.
        default_integrations=False,
        auto_enabling_integrations=False,
        send_default_pii=False,
        include_local_variables=False,
        max_breadcrumbs=0,
        max_request_body_size="never",
        before_send=scrub_event,
    )
    sentry_sdk.set_tag("service", service)
    _sentry_enabled = True


def flush_sentry() -> None:
    if _sentry_enabled:
        import sentry_sdk

        sentry_sdk.flush(_FLUSH_SECONDS)


def report_exception(_: WrappedLogger, level: str, event: EventDict) -> EventDict:
    """Reports the exception of a log line. A structlog processor that returns the line unchanged."""
    if level not in _ERROR_LEVELS or not (error := _find_exception(event)):
        return event
    action = str(event.get("action", "unknown"))
    from footplate.telemetry import metrics

    metrics.EXCEPTIONS.labels(metrics.ACTION_LABELS(action)).inc()
    traces.record_exception(error, action)
    if _sentry_enabled:
        _send_to_sentry(error, event)
    return event


def _send_to_sentry(error: BaseException, event: EventDict) -> None:
    import sentry_sdk

    with sentry_sdk.new_scope() as scope:
        for name in REPORTED_IDS:
            if name in event:
                scope.set_tag(name, str(event[name]))
        scope.capture_exception(error)


def scrub_event(event: "Event", _: "Hint") -> "Event":
    """Removes everything except the exception, its stack and the ids from a Sentry event."""
    for name in ("request", "user", "extra", "breadcrumbs", "server_name", "modules"):
        event.pop(name, None)
    for exception in (event.get("exception") or {}).get("values", []):
        if exception.get("value"):
            exception["value"] = scrub_secrets(exception["value"])
        for frame in (exception.get("stacktrace") or {}).get("frames", []):
            frame.pop("vars", None)
    return event


def _find_exception(event: EventDict) -> BaseException | None:
    info = event.get("exc_info")
    if isinstance(info, BaseException):
        return info
    if isinstance(info, tuple):
        return info[1] if isinstance(info[1], BaseException) else None
    return sys.exception() if info else None
