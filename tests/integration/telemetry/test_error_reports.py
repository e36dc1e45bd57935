"""Unexpected errors of a real process reach Sentry and an OTLP endpoint, without secrets."""

import asyncio
import sys

import pytest
from bench.support.telemetry.telemetry_sink import TelemetrySink, open_sink

PROGRAM = """
import os
import structlog
from footplate.telemetry import configure_logging, errors, traces
configure_logging()
traces.start("worker", "1.0")
errors.start_sentry(os.environ["SENTRY_DSN"], "worker", "1.0")
log = structlog.get_logger("test")

def work(password):
    raise ValueError("refused: sk-ant-0123456789abcdef, api_key=hunter2")

span = traces.begin("turn", {})
with span.current(), structlog.contextvars.bound_contextvars(session="sesn_1", turn="turn_1", attempt=2):
    try:
        work("hunter2")
    except ValueError:
        log.exception("turn crashed", action="turn.crashed")
    try:
        work("hunter2")
    except ValueError:
        log.warning("expected, and no reason to tell anybody", action="turn.refused", exc_info=True)
span.end()
try:
    raise KeyError("outside of any span")
except KeyError:
    log.exception("alone", action="lease.failed")
traces.stop()
errors.stop()
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
