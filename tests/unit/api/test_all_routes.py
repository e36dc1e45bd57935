"""Behaviour of all routes: keys, error bodies, request ids, sizes, unknown fields, cursors and health."""

import json
import re
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic
from structlog.testing import capture_logs

from footplate.api.requests.parsing import parse_line
from footplate.api.routes.unsupported import UNSUPPORTED_ROUTES
from footplate.api.wire.response_models import Error
from footplate.domain.errors import Fenced, Forbidden, Overloaded, RateLimited, Unavailable
from footplate.domain.json import Json
from footplate.domain.network.request_limits import RequestLimits

from .conftest import BASE, Api, make_client

TYPES = set(anthropic.types.shared.ErrorType.__args__)  # pyrefly: ignore[missing-attribute]


def check_error(response: httpx2.Response, status: int, retry: str | None) -> dict[str, Any]:
    """Checks an error response: a known type, the request id in body and header, and whether a retry can help."""
    body: dict[str, Any] = response.json()
    assert response.status_code == status, response.text
    Error.model_validate(body)
    assert body["error"]["type"] in TYPES
    assert body["request_id"] == response.headers["request-id"]
    assert body["request_id"].startswith("req_")
    assert response.headers.get("x-should-retry") == retry
    error: dict[str, Any] = body["error"]
    return error


async def test_both_key_headers_are_accepted(api: Api) -> None:
    async with make_client(api.app, None) as client:
        for headers in ({"x-api-key": "secret-a"}, {"authorization": "bearer secret-a"}):
            response = await client.get("/v1/agents", headers=headers)
            assert response.status_code == 200
            assert response.headers["request-id"].startswith("req_")


async def test_every_route_requires_a_key(api: Api) -> None:
    schema = api.app.openapi()
    open_routes = set()
    async with make_client(api.app, None) as client:
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                response = await client.request(method.upper(), path.replace("{", "x_").replace("}", ""))
                if operation.get("security") == []:
                    open_routes.add(path)
                else:
                    assert check_error(response, 401, "false")["type"] == "authentication_error"
    sign_in_routes = {"/v1/sign_in", "/v1/sign_in/oidc", "/v1/sign_in/oidc/callback", "/v1/browser_sessions"}
    sign_in_routes |= {"/v1/device_authorizations", "/v1/device_authorizations/token"}
    assert open_routes == {"/livez", "/readyz", "/v1/triggers/{trigger_id}", *sign_in_routes}


async def test_another_organisation_finds_nothing(api: Api, sdk: AsyncAnthropic) -> None:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    session = await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    async with make_client(api.app, "secret-b") as stranger:
        for path in (f"agents/{agent.id}", f"environments/{environment.id}", f"sessions/{session.id}"):
            check_error(await stranger.get(f"/v1/{path}"), 404, "false")
            check_error(await stranger.post(f"/v1/{path}", json={}), 404, "false")
            check_error(await stranger.post(f"/v1/{path}/archive"), 404, "false")
        for list_path in ("agents", "environments", "sessions"):
            assert (await stranger.get(f"/v1/{list_path}")).json()["data"] == []


async def test_the_sdk_raises_typed_exceptions(sdk: AsyncAnthropic, api: Api) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        await sdk.beta.agents.retrieve("agent_none")
    assert missing.value.type == "not_found_error"
    assert (missing.value.request_id or "").startswith("req_")
    with pytest.raises(anthropic.BadRequestError):
        await sdk.beta.agents.create(name="", model="m")
    with pytest.raises(anthropic.AuthenticationError):
        await sdk.with_options(api_key="wrong").beta.agents.retrieve("agent_none")
    api.keys.failure = Forbidden("Not with this key.")
    with pytest.raises(anthropic.PermissionDeniedError):
        await sdk.beta.agents.retrieve("agent_none")


@pytest.mark.parametrize(
    ("failure", "status", "kind", "wait"),
    [
        (Unavailable("The database does not answer."), 503, "api_error", "1"),
        (Unavailable("The database does not answer.", retry_after=2.5), 503, "api_error", "3"),
        (RateLimited("Slow down.", retry_after=30), 429, "rate_limit_error", "30"),
        (Overloaded("Busy."), 529, "overloaded_error", "1"),
    ],
)
async def test_retryable_errors_say_when_to_retry(
    http: httpx2.AsyncClient, api: Api, failure: Exception, status: int, kind: str, wait: str
) -> None:
    api.keys.failure = failure
    response = await http.get("/v1/agents")
    assert check_error(response, status, "true")["type"] == kind
    assert response.headers["retry-after"] == wait


@pytest.mark.parametrize("failure", [RuntimeError("password=hunter2"), Fenced("epoch 7")])
async def test_an_internal_error_is_logged_and_not_exposed(
    http: httpx2.AsyncClient, api: Api, failure: Exception
) -> None:
    api.keys.failure = failure
    with capture_logs() as logs:
        response = await http.get("/v1/agents")
    assert check_error(response, 500, None)["type"] == "api_error"
    assert str(failure) not in response.text
    failed = [line for line in logs if line["action"] == "api.failed"]
    assert failed[0]["request_id"] == response.headers["request-id"]


async def test_unknown_routes_and_methods_are_refused(http: httpx2.AsyncClient) -> None:
    for path in ("/v1/nonsense", "/v1/agents/", "/v1/agents/x%00y", "/docs"):
        assert check_error(await http.get(path), 404, "false")["type"] == "not_found_error"
    response = await http.put("/v1/agents", json={})
    assert check_error(response, 405, "false")["type"] == "invalid_request_error"
    assert response.headers["allow"]


@pytest.mark.parametrize(("part", "path"), UNSUPPORTED_ROUTES.items())
async def test_unsupported_resources_are_refused_by_name(
    api: Api, http: httpx2.AsyncClient, part: str, path: str
) -> None:
    url = path.replace("{session_id}", "sesn_1").replace("{environment_id}", "env_1")
    for response in (await http.get(url), await http.post(url, json={}), await http.delete(f"{url}/x/y")):
        error = check_error(response, 400, "false")
        assert (error["type"], error["field"]) == ("invalid_request_error", part)
    async with make_client(api.app, None) as stranger:
        check_error(await stranger.get(url), 401, "false")


async def test_large_bodies_are_refused(api: Api) -> None:
    async def chunks() -> Any:
        for _ in range(20):
            yield b" " * 100_000

    async with make_client(api.app) as client:
        check_error(await client.post("/v1/agents", content=b" " * 1_000_001), 413, "false")
        check_error(await client.post("/v1/agents", content=chunks()), 413, "false")
        check_error(await client.post("/v1/agents", content=b" " * 1_000_000), 400, "false")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"\\ud800"',
        b'{"a":"\\ud800", "b":NaN}',
        b'{"a":"\\ud800", "b":1e999}',
        b'{"a":"\\ud800", "b":[-1e999]}',
        b'{"a":"\\ud800", "b":-Infinity}',
        b'{"a":"\\ud800", "b":' + b"9" * 400 + b"}",
        b'{"b":1e999}',
        b"\xff",
        b'{"name":"A","model":"m","model_parameters":' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}",
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b'{"a":"\\ud800","b":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
async def test_a_body_that_is_not_a_json_object_is_refused(http: httpx2.AsyncClient, raw: bytes) -> None:
    assert check_error(await http.post("/v1/agents", content=raw), 400, "false")["field"] == "body"


async def test_compressed_bodies_are_refused(http: httpx2.AsyncClient) -> None:
    response = await http.post("/v1/agents", content=b"x", headers={"content-encoding": "gzip"})
    assert check_error(response, 400, "false")["field"] == "content-encoding"


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/v1/agents", "limit=0", "limit"),
        ("/v1/agents", "limit=101", "limit"),
        ("/v1/agents", "limit=ten", "limit"),
        ("/v1/agents", "limit=1&limit=2", "limit"),
        ("/v1/agents", "order=asc", "order"),
        ("/v1/agents", "created_at[gte]=yesterday", "created_at[gte]"),
        ("/v1/agents", "created_at[gte]=0001-01-01T00:00:00%2B14:00", "created_at[gte]"),
        ("/v1/agents/agent_1", "version=0", "version"),
        ("/v1/agents/agent_1", "version=99999999999999999999", "version"),
        ("/v1/agents/agent_1/versions", "page=x", "page"),
        ("/v1/environments", "page=%00", "page"),
        ("/v1/sessions", "statuses[]=sleeping", "statuses[].0"),
        ("/v1/sessions", "agent_id=%00", "agent_id"),
        ("/v1/sessions", "order=up", "order"),
        ("/v1/sessions/sesn_1/events", "limit=1001", "limit"),
        ("/v1/sessions/sesn_1/events", "types[]=user.dance", "types[].0"),
        ("/v1/sessions/sesn_1/turns", "page=W10", "page"),
        ("/v1/sessions/sesn_1", "expand=all", "expand"),
        ("/v1/sessions/sesn_1/events", "&".join(["types[]=user.message"] * 201), "query"),
    ],
)
async def test_queries_are_refused_by_name(http: httpx2.AsyncClient, path: str, query: str, field: str) -> None:
    assert check_error(await http.get(f"{path}?{query}"), 400, "false")["field"] == field


async def test_the_query_of_a_post_is_checked(http: httpx2.AsyncClient) -> None:
    body = {"name": "A", "model": "m"}
    assert check_error(await http.post("/v1/agents?dry_run=true", json=body), 400, "false")["field"] == "dry_run"
    assert (await http.post("/v1/agents?beta=true", json=body)).status_code == 200


async def test_cursors_keep_their_order_and_list(http: httpx2.AsyncClient, sdk: AsyncAnthropic) -> None:
    agent = await sdk.beta.agents.create(name="A", model="m")
    await sdk.beta.agents.create(name="B", model="m")
    environment = await sdk.beta.environments.create(name="E")
    for _ in range(2):
        await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    cursor = (await http.get("/v1/sessions", params={"limit": "1", "order": "asc"})).json()["next_page"]
    assert (await http.get("/v1/sessions", params={"page": cursor})).status_code == 200
    wrong = await http.get("/v1/sessions", params={"page": cursor, "order": "desc"})
    assert check_error(wrong, 400, "false")["field"] == "page"
    foreign = (await http.get("/v1/agents", params={"limit": "1"})).json()["next_page"]
    check_error(await http.get("/v1/sessions", params={"page": foreign}), 400, "false")


async def test_an_operator_may_ignore_unknown_fields(api: Api) -> None:
    async with make_client(api.build(ignore_unknown_fields=True)) as client:
        body = {"name": "A", "model": {"id": "m", "warp": 9}, "from_the_future": True}
        made = await client.post("/v1/agents?hint=1", json=body)
        assert made.status_code == 200, made.text
        assert "warp" not in made.text
        still = await client.post("/v1/agents", json={"name": "A", "model": "m", "skills": ["x"]})
        assert check_error(still, 400, "false")["field"] == "skills"


async def test_health_routes_report_each_service(api: Api) -> None:
    async with make_client(api.app, None) as client:
        assert (await client.get("/livez")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).json() == {"status": "ok", "parts": {"database": "ok"}}
        api.health.parts = {"database": "ok", "redis": "does not respond"}
        response = await client.get("/readyz")
        assert response.status_code == 200
        assert response.json() == {"status": "degraded", "parts": api.health.parts}
        api.health.is_ready = False
        response = await client.get("/readyz")
        assert response.status_code == 503
        assert response.json() == {"status": "unavailable", "parts": api.health.parts}


async def test_openapi_describes_bodies_and_queries(api: Api) -> None:
    async with make_client(api.app, None) as client:
        schema = (await client.get("/openapi.json")).json()
    create = schema["paths"]["/v1/agents"]["post"]
    reference = create["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert reference.rsplit("/", 1)[1] in schema["components"]["schemas"]
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(schema)))
    assert referred <= schema["components"]["schemas"].keys()
    names = [parameter["name"] for parameter in schema["paths"]["/v1/sessions"]["get"]["parameters"]]
    assert {"statuses[]", "created_at[gte]", "page"} <= set(names)
    assert BASE not in str(schema)


def _parse(raw: bytes) -> Json:
    return parse_line(raw, RequestLimits())["b"]


def test_numbers_next_to_a_lone_surrogate_are_parsed_as_orjson_does() -> None:
    for number in (b"18446744073709551615", b"18446744073709551616", b"-9223372036854775808", b"1e308", b"-1", b"0.5"):
        assert _parse(b'{"a":"\\ud800","b":' + number + b"}") == _parse(b'{"b":' + number + b"}")
