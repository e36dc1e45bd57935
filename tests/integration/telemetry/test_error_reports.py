"""Unexpected errors of a real process reach Sentry and an OTLP endpoint, without secrets."""

import asyncio
import sys

import pytest
from bench.support.telemetry.telemetry_sink import TelemetrySink, open_sink

PROGRAM = """
import os
import structlog
from footplate.telemetry import configure_logging, error_reports, traces
configure_logging()
traces.start_tracing("worker", "1.0")
error_reports.start_sentry(os.environ["SENTRY_DSN"], "worker", "1.0")
log = structlog.get_logger("test")

def work(password):
    raise ValueError("refused: sk-ant-0123456789abcdef, api_key=hunter2")

span = traces.start_span("turn", {})
with span.make_current(), structlog.contextvars.bound_contextvars(session="sesn_1", turn="turn_1", attempt=2):
    try:
        work("hunter2")
    except ValueError:
        log.exception("turn crashed", action="turn.crashed")
    try:
        work("hunter2")
    except ValueError:
        log.warning("expected, so it is not reported", action="turn.refused", exc_info=True)
span.end()
try:
    raise KeyError("outside of any span")
except KeyError:
    log.exception("alone", action="lease.failed")
traces.stop_tracing()
error_reports.flush_sentry()
"""


@pytest.fixture
async def sink_of_failed_process() -> TelemetrySink:
    async with open_sink() as sink:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM),
            env={"PATH": "/usr/bin:/bin", "SENTRY_DSN": sink.dsn, "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url},
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert await asyncio.wait_for(process.wait(), 60) == 0
        return sink


@pytest.mark.requirement("F10")
async def test_sentry_receives_the_exception_with_its_ids(sink_of_failed_process: TelemetrySink) -> None:
    assert [report["exception"]["values"][0]["type"] for report in sink_of_failed_process.reports] == [
        "ValueError",
        "KeyError",
    ]
    tags = {"service": "worker", "action": "turn.crashed", "session": "sesn_1", "turn": "turn_1", "attempt": "2"}
    assert sink_of_failed_process.reports[0]["tags"] == tags
    assert sink_of_failed_process.reports[0]["release"] == "footplate@1.0"


async def test_the_trace_has_the_exception_in_its_span_or_a_separate_one(sink_of_failed_process: TelemetrySink) -> None:
    spans = {span.name: span for span in sink_of_failed_process.spans}
    assert set(spans) == {"turn", "lease.failed"}
    assert spans["turn"].events["exception"]["exception.type"] == "ValueError"
    assert spans["turn"].failed
    assert spans["lease.failed"].events["exception"]["exception.type"] == "KeyError"


@pytest.mark.requirement("F10")
async def test_no_secret_and_no_variable_is_sent(sink_of_failed_process: TelemetrySink) -> None:
    everything = b"".join(sink_of_failed_process.raw)
    assert b"refused: [removed], [removed]" in everything
    assert b"hunter2" not in everything
    assert b"sk-ant-" not in everything
