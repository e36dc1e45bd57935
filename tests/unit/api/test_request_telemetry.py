"""Each request is counted once, under the template of its route. Its span names the caller."""

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import Metric
from structlog.contextvars import get_contextvars

from footplate.telemetry import metrics, traces

from .conftest import Api
from .fake_services import ALICE


def read_request_counts() -> dict[tuple[str, str, str], float]:
    (family,) = list(metrics.HTTP_REQUESTS.collect())
    assert isinstance(family, Metric)
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for sample in family.samples
    }


async def count_added(http: httpx2.AsyncClient, method: str, path: str) -> dict[tuple[str, str, str], float]:
    before = read_request_counts()
    await http.request(method, path)
    return {
        key: value - before.get(key, 0) for key, value in read_request_counts().items() if value != before.get(key, 0)
    }


async def test_a_request_counts_under_its_template(http: httpx2.AsyncClient) -> None:
    assert await count_added(http, "GET", "/v1/sessions/sesn_secret") == {
        ("GET", "/v1/sessions/{session_id}", "404"): 1
    }
    assert await count_added(http, "GET", "/v1/agents") == {("GET", "/v1/agents", "200"): 1}


async def test_unknown_methods_and_paths_have_no_label_of_their_own(http: httpx2.AsyncClient) -> None:
    assert await count_added(http, "GET", "/nowhere/at/all") == {("GET", "unmatched", "404"): 1}
    assert await count_added(http, "BREW", "/coffee") == {("other", "unmatched", "404"): 1}


async def test_an_internal_error_counts_as_one_request(http: httpx2.AsyncClient, api: Api) -> None:
    api.keys.failure = RuntimeError("inside")
    assert await count_added(http, "GET", "/v1/agents") == {("GET", "/v1/agents", "500"): 1}


async def test_a_span_has_the_id_of_the_caller(http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(traces, "_tracer", provider.get_tracer("test"))
    await http.get("/v1/agents")
    await http.get("/v1/agents", headers={"authorization": "Bearer wrong"})
    provider.shutdown()
    assert [(span.attributes or {}).get("enduser.id") for span in exporter.get_finished_spans()] == [ALICE.id, None]
    assert "principal" not in get_contextvars()
