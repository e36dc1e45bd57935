"""Configures logging once per process: readable lines on a terminal, JSON otherwise.

Every line has an `action`, and the ids that were bound with `structlog.contextvars` (`request_id`, `session`, `turn`,
`attempt`). Log lines of libraries, which use Python's `logging` module, have the same format and the action
`library.<name>`.
"""

import logging
import sys
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from footplate.domain.text.visible_text import show_line, show_prose
from footplate.telemetry import error_reports, traces

_INFO: Final = 20
_MULTILINE_KEYS: Final = frozenset({"exception", "stack"})


def configure_logging() -> None:
    renderer: Processor = TerminalRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        traces.add_trace_ids,
        error_reports.report_exception,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_INFO),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = _StderrHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_add_library_action, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


class TerminalRenderer:
    """Renders lines for people. Values are escaped, because untrusted text must not control the operator's terminal."""

    def __init__(self) -> None:
        self._console = structlog.dev.ConsoleRenderer()

    def __call__(self, logger: WrappedLogger, name: str, event: EventDict) -> str:
        return self._console(logger, name, {key: _escape_value(key, value) for key, value in event.items()})


def _escape_value(key: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    return show_prose(value) if key in _MULTILINE_KEYS else show_line(value)


def _add_library_action(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    event.setdefault("action", f"library.{record.name}")
    if record.exc_info:
        event["exc_info"] = record.exc_info
    return event


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`, which a test or a terminal may have replaced."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        pass
