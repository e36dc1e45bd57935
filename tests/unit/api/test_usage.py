"""`GET /v1/usage`: the query, the response, and the organisation that it covers."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import httpx2
import pytest
from inline_snapshot import snapshot

from footplate.domain.json import Json
from footplate.domain.ports.usage_report import ToolCalls, UsageRow
from footplate.domain.sessions.events import Usage

from .conftest import Api, make_client
from .fake_services import ALICE, BOB

DAY = datetime(2026, 11, 15, tzinfo=UTC)


def make_row(**group: Json) -> UsageRow:
    return UsageRow(
        group=group,
        turns=3,
        statuses={"completed": 2, "failed": 1},
        seconds=1.23456,
        usage=Usage(input_tokens=10, output_tokens=5, cache_read_tokens=2, requests=4, cost_microusd=12_345),
        unpriced_turns=1,
    )


async def test_a_row_has_its_group_and_its_usage(http: httpx2.AsyncClient, api: Api) -> None:
    api.usage.lines = [make_row(day="2026-11-14", model="claude-opus-5")]
    query = httpx2.QueryParams(
        [("group_by", "day"), ("group_by[]", "model"), ("from", "2026-11-01T00:00:00Z"), ("to", "2026-11-15")]
    )
    response = await http.get("/v1/usage", params=query)
    assert response.json() == snapshot(
        {
            "data": [
                {
                    "type": "usage",
                    "day": "2026-11-14",
                    "model": "claude-opus-5",
                    "turns": 3,
                    "statuses": {"completed": 2, "failed": 1},
                    "success_rate": 0.6667,
                    "iterations": 4,
                    "seconds": 1.235,
                    "average_seconds": 0.4115,
                    "usage": {
                        "input_tokens": 10,
                        "output_tokens": 5,
                        "cache_read_input_tokens": 2,
                        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                        "requests": 4,
                        "list_cost": {"amount": "2", "currency": "USD"},
                        "cost_microusd": 12345,
                    },
                    "unpriced_turns": 1,
                }
            ],
            "from": "2026-11-01T00:00:00Z",
            "to": "2026-11-15T00:00:00Z",
            "has_more": False,
        }
    )
    (principal, question) = api.usage.requests[0]
    assert principal == ALICE
    assert question.group_by == {"day", "model"}


async def test_the_default_range_is_the_last_thirty_days(http: httpx2.AsyncClient, api: Api) -> None:
    assert (await http.get("/v1/usage")).status_code == 200
    question = api.usage.requests[0][1]
    assert question.end - question.start == timedelta(days=30)
    assert question.end.time() == time()
    assert timedelta() < question.end - datetime.now(UTC) <= timedelta(days=1)
    assert question.group_by == frozenset()


async def test_a_year_ago_until_now_is_not_too_long(http: httpx2.AsyncClient) -> None:
    start = datetime.now(UTC) - timedelta(days=365, hours=23)
    assert (await http.get("/v1/usage", params={"from": start.isoformat()})).status_code == 200


async def test_each_key_queries_its_own_organisation(api: Api) -> None:
    async with make_client(api.app, "secret-b") as http:
        await http.get("/v1/usage", params={"group_by": "key"})
    assert [principal for principal, _ in api.usage.requests] == [BOB]


async def test_a_limited_list_reports_that_there_is_more(http: httpx2.AsyncClient, api: Api) -> None:
    api.usage.lines = [make_row(session=f"sesn_{n}") for n in range(3)]
    cut = (await http.get("/v1/usage", params={"group_by": "session", "limit": 2})).json()
    assert [item["session"] for item in cut["data"]] == ["sesn_0", "sesn_1"]
    assert cut["has_more"] is True


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"group_by": "mood"}, "group_by[].0"),
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-11-15T00:00:00Z", "to": "2026-11-14T00:00:00Z"}, "from"),
        ({"from": "2020-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "from"),
        ({"to": "0001-01-01T00:00:00Z", "from": "9999-12-31T23:59:59Z"}, "from"),
        ({"limit": "0"}, "limit"),
        ({"min_iterations": "-1"}, "min_iterations"),
        ({"by": "day"}, "by"),
        ({"tool": "bash"}, "tool[]"),
        ({"group_by": ["tool", "hour"]}, "group_by[]"),
        ({"group_by": "hour", "from": "2026-11-01T00:00:00Z", "to": "2026-11-05T00:00:00Z"}, "from"),
        ({"status": "lost"}, "status[].0"),
        ({"parameter": "max_iterations"}, "parameter[]"),
    ],
)
async def test_an_invalid_query_is_refused_by_field(
    http: httpx2.AsyncClient, query: dict[str, str | list[str]], field: str
) -> None:
    response = await http.get("/v1/usage", params=query)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert response.json()["error"]["field"] == field


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
async def test_extreme_dates_do_not_fail(http: httpx2.AsyncClient, moment: str) -> None:
    for name in ("from", "to"):
        assert (await http.get("/v1/usage", params={name: moment})).status_code in {200, 400}


async def test_usage_needs_a_key(api: Api) -> None:
    async with make_client(api.app, None) as http:
        assert (await http.get("/v1/usage")).status_code == 401


async def test_usage_is_in_the_openapi_document(http: httpx2.AsyncClient) -> None:
    described = (await http.get("/openapi.json")).json()["paths"]["/v1/usage"]["get"]
    names = ["session", "agent", "model", "harness", "member", "project", "status", "tool", "parameter"]
    expected = ["group_by[]", *(f"{name}[]" for name in names), "min_iterations", "from", "to", "limit"]
    assert [item["name"] for item in described["parameters"]] == expected


@pytest.mark.requirement("F9")
async def test_filters_and_parameters_reach_the_query(http: httpx2.AsyncClient, api: Api) -> None:
    calls = ToolCalls(calls=4, failed=1, seconds=2.0)
    api.usage.lines = [replace(make_row(tool="bash", parameters={"mode": "background"}), tool_calls=calls)]
    params = {
        "group_by": ["tool", "parameters"],
        "agent": ["agent_1", "agent_2"],
        "tool[]": "bash",
        "status": "failed",
        "min_iterations": "6",
        "parameter": ["max_iterations=50", "effort=high", 'style="\\u0000"'],
    }
    (line,) = (await http.get("/v1/usage", params=params)).json()["data"]
    assert line["tool_calls"] == {
        "calls": 4,
        "failed": 1,
        "success_rate": 0.75,
        "seconds": 2.0,
        "average_seconds": 0.5,
    }
    assert line["parameters"] == {"mode": "background"}
    question = api.usage.requests[0][1]
    assert question.filters == {"agent": ["agent_1", "agent_2"], "tool": ["bash"], "status": ["failed"]}
    assert question.parameters == {"max_iterations": 50, "effort": "high", "style": "\ufffd"}
    assert question.min_requests == 6


async def test_a_report_by_hour_covers_the_last_day(http: httpx2.AsyncClient, api: Api) -> None:
    assert (await http.get("/v1/usage", params={"group_by": "hour"})).status_code == 200
    question = api.usage.requests[0][1]
    assert timedelta(hours=23) <= datetime.now(UTC) - question.start <= timedelta(hours=24)
