"""Each request is counted once, under the template of its route."""

import httpx2
from prometheus_client import Metric

from footplate.telemetry import metrics

from .conftest import Api


def counted() -> dict[tuple[str, str, str], float]:
    (family,) = list(metrics.HTTP_REQUESTS.collect())
    assert isinstance(family, Metric)
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for sample in family.samples
    }


async def added(http: httpx2.AsyncClient, method: str, path: str) -> dict[tuple[str, str, str], float]:
    before = counted()
    await http.request(method, path)
    return {key: value - before.get(key, 0) for key, value in counted().items() if value != before.get(key, 0)}


async def test_a_request_counts_under_its_template(http: httpx2.AsyncClient) -> None:
    assert await added(http, "GET", "/v1/sessions/sesn_secret") == {("GET", "/v1/sessions/{session_id}", "404"): 1}
    assert await added(http, "GET", "/v1/agents") == {("GET", "/v1/agents", "200"): 1}


async def test_what_a_client_makes_up_is_no_label(http: httpx2.AsyncClient) -> None:
    assert await added(http, "GET", "/nowhere/at/all") == {("GET", "unmatched", "404"): 1}
    assert await added(http, "BREW", "/coffee") == {("other", "unmatched", "404"): 1}


async def test_a_failure_inside_counts_as_one(http: httpx2.AsyncClient, api: Api) -> None:
    api.keys.failure = RuntimeError("inside")
    assert await added(http, "GET", "/v1/agents") == {("GET", "/v1/agents", "500"): 1}
