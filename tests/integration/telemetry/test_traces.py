"""Traces cost nothing without an endpoint, and a process does not wait for an endpoint that is unreachable."""

import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.timing

OFF = """
import sys
from footplate.telemetry import traces
span = traces.start_span("turn", {}, parent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
with span.make_current():
    span.start_child("chat", {}).end()
span.end()
assert traces.current_traceparent() is None
assert not [name for name in sys.modules if name.startswith("opentelemetry")], "loaded without need"
"""
GONE = """
import os
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
from footplate.telemetry import configure_logging, traces
configure_logging()
traces.start_tracing("test", "1")
traces.start_span("turn", {}).end()
traces.stop_tracing()
"""


def _run(program: str) -> float:
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env={"PATH": "/usr/bin:/bin"})
    return time.monotonic() - started


def test_no_module_is_loaded_when_traces_are_off() -> None:
    _run(OFF)


def test_a_process_ends_although_its_endpoint_does_not_respond() -> None:
    assert _run(GONE) < 20
