"""Records OpenTelemetry spans and sends them to the OTLP endpoint that the environment variables name. Without an
endpoint, OpenTelemetry is not imported, and all span functions do nothing.

The trace context of a request is stored with its input as a W3C `traceparent`. Every process that runs the turn, in any
attempt, continues the trace of that request.
"""

import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from structlog.typing import EventDict, WrappedLogger

from footplate.telemetry.secret_scrubbing import scrub_secrets

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as _OtelSpan
    from opentelemetry.trace import SpanKind, Tracer

Kind = Literal["internal", "server", "client"]
Attributes = Mapping[str, str | int | float | bool]

TRACEPARENT_HEADER: Final = "traceparent"
_SHUTDOWN_SECONDS: Final = 3.0
"""Seconds that an ending process waits for unsent spans."""

_tracer: "Tracer | None" = None
_provider: "TracerProvider | None" = None


def start_tracing(service: str, version: str) -> None:
    """Starts tracing, once per process, if the environment names an OTLP endpoint. The SDK reads the other `OTEL_…`
    variables.
    """
    global _tracer, _provider  # noqa: PLW0603 - one per process, like the logging configuration
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": f"footplate-{service}", "service.version": version})
    _provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = _provider.get_tracer("footplate", version)


def stop_tracing() -> None:
    """Sends the remaining spans. If the endpoint does not respond in time, they are dropped: traces do not delay an
    exit.
    """
    global _tracer, _provider
    provider, _tracer, _provider = _provider, None, None
    if provider is not None:
        shutdown = threading.Thread(target=provider.shutdown, daemon=True)
        shutdown.start()
        shutdown.join(_SHUTDOWN_SECONDS)


class Span:
    """A span that records nothing, and the interface of all spans."""

    def set_attributes(self, attributes: Attributes) -> None:
        pass

    def set_error(self, error_type: str) -> None:
        """`error_type` is a code or a class name, never a message, because messages may contain a user's text."""

    def add_event(self, name: str, attributes: Attributes) -> None:
        pass

    def rename(self, name: str) -> None:
        pass

    def start_child(self, name: str, attributes: Attributes, *, kind: Kind = "internal") -> "Span":  # noqa: ARG002
        return self

    def end(self, at_ns: int | None = None) -> None:
        """`at`: the end in nanoseconds since the epoch; None: now."""

    @contextmanager
    def make_current(self) -> Iterator[None]:
        """Makes this the current span, to which exceptions, log lines and stored inputs are attached."""
        yield


NO_SPAN: Final = Span()


class _RecordedSpan(Span):
    def __init__(self, tracer: "Tracer", span: "_OtelSpan") -> None:
        self._tracer = tracer
        self._span = span

    def set_attributes(self, attributes: Attributes) -> None:
        self._span.set_attributes({**attributes})

    def set_error(self, error_type: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR))

    def add_event(self, name: str, attributes: Attributes) -> None:
        self._span.add_event(name, {**attributes})

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def start_child(self, name: str, attributes: Attributes, *, kind: Kind = "internal") -> Span:
        from opentelemetry.trace import set_span_in_context

        context = set_span_in_context(self._span)
        span = self._tracer.start_span(name, context, _span_kind(kind), {**attributes})
        return _RecordedSpan(self._tracer, span)

    def end(self, at_ns: int | None = None) -> None:
        self._span.end(at_ns)

    @contextmanager
    def make_current(self) -> Iterator[None]:
        from opentelemetry.trace import use_span

        with use_span(self._span, record_exception=False, set_status_on_exception=False):
            yield


def start_span(name: str, attributes: Attributes, *, kind: Kind = "internal", parent: str | None = None) -> Span:
    """Starts a span whose parent is in another process, or a span without a parent."""
    if _tracer is None:
        return NO_SPAN
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = Context()
    if parent:
        context = TraceContextTextMapPropagator().extract({TRACEPARENT_HEADER: parent}, context)
    return _RecordedSpan(_tracer, _tracer.start_span(name, context, _span_kind(kind), {**attributes}))


def is_enabled() -> bool:
    return _tracer is not None


def current_traceparent() -> str | None:
    """Returns the `traceparent` of the current span, to pass to another process."""
    if _tracer is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(TRACEPARENT_HEADER)


def record_exception(error: BaseException, action: str) -> None:
    """Records an exception in the current span, or in a new span if there is none."""
    if _tracer is None:
        return
    from opentelemetry.trace import Status, StatusCode, get_current_span

    span = get_current_span()
    new_span = None if span.is_recording() else _tracer.start_span(action)
    target = new_span or span
    attributes = {
        "footplate.action": action,
        "exception.message": scrub_secrets(str(error)),
        "exception.stacktrace": scrub_secrets("".join(traceback.format_exception(error))),
    }
    target.record_exception(error, attributes)
    target.set_attribute("error.type", type(error).__name__)
    target.set_status(Status(StatusCode.ERROR))
    if new_span is not None:
        new_span.end()


def add_trace_ids(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Adds the trace and span ids to a log line."""
    if _tracer is None:
        return event
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = f"{context.trace_id:032x}"
        event["span_id"] = f"{context.span_id:016x}"
    return event


def now_ns() -> int:
    return time.time_ns()


def _span_kind(kind: Kind) -> "SpanKind":
    from opentelemetry.trace import SpanKind

    return SpanKind[kind.upper()]
