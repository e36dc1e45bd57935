"""`/v1/limits`, and how a request that exceeds a limit of its organisation or member is refused."""

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from footplate.api.wire.limits import LimitResponse
from footplate.domain.organisations.limits import EACH_MEMBER, ORGANISATION, LimitName
from footplate.telemetry import metrics

from .conftest import Api
from .fake_services import ALICE


async def test_limits_are_set_listed_and_removed(api: Api, http: httpx2.AsyncClient) -> None:
    bodies: list[Mapping[str, Any]] = [
        {"name": "sessions", "value": 10},
        {"name": "streams", "value": 0, "scope": "each_member"},
        {"name": "streams", "value": 5, "scope": "member", "member_id": ALICE.id},
    ]
    for body in bodies:
        changed = LimitResponse.model_validate((await http.post("/v1/limits", json=body)).json())
        assert {name: getattr(changed, name) for name in body} == body
        assert (changed.own_value, changed.operator_value) == (body["value"], None)
    listed = [LimitResponse.model_validate(each) for each in (await http.get("/v1/limits")).json()["data"]]
    assert [(each.name, each.scope, each.member_name, each.value, each.used) for each in listed] == [
        ("sessions", "organisation", None, 10, 0),
        ("streams", "each_member", None, 0, 0),
        ("streams", "member", "alice", 5, 0),
    ]
    assert (await http.post("/v1/limits", json={"name": "sessions", "value": None})).json()["value"] is None
    assert (LimitName.SESSIONS, ORGANISATION) not in api.world.limits.limits


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "sessions"}, "value"),
        ({"name": "sessions", "value": -1}, "value"),
        ({"name": "sessions", "value": 1 << 60}, "value"),
        ({"name": "requests_per_second", "value": 0}, "value"),
        ({"name": "unknown", "value": 1}, "name"),
        ({"name": "sessions", "value": 1, "scope": "member"}, "member_id"),
        ({"name": "sessions", "value": 1, "member_id": "memb_1"}, "member_id"),
    ],
)
async def test_a_wrong_limit_is_refused_by_field(http: httpx2.AsyncClient, body: object, field: str) -> None:
    response = await http.post("/v1/limits", json=body)
    assert (response.status_code, response.json()["error"]["field"]) == (400, field), response.text


async def test_a_refusal_names_the_limit_and_when_to_retry(api: Api, http: httpx2.AsyncClient) -> None:
    api.world.limits.limits[LimitName.REQUESTS_PER_SECOND, EACH_MEMBER] = 1
    refusals = metrics.LIMIT_REFUSALS.labels(ALICE.organisation, "requests_per_second")
    before = refusals._value.get()
    assert (await http.get("/v1/sessions")).status_code == 200
    response = await http.get("/v1/sessions")
    error = response.json()["error"]
    assert (response.status_code, response.headers["retry-after"], error["type"]) == (429, "1", "rate_limit_error")
    assert error["message"] == "The limit requests_per_second of the member 'alice' is reached: 1 requests per second."
    assert error["docs"].endswith("#limit_exceeded")
    assert response.headers["x-should-retry"] == "true"
    assert refusals._value.get() == before + 1


async def test_a_request_beyond_the_rate_is_refused_before_its_role_is_checked(
    api: Api, http: httpx2.AsyncClient
) -> None:
    """The audit trail records a refused role, which would cost more than the request itself."""
    api.world.limits.limits[LimitName.REQUESTS_PER_SECOND, ORGANISATION] = 1
    api.world.limits.used[LimitName.REQUESTS_PER_SECOND] = 1
    response = await http.get("/v1/members", headers={"authorization": "Bearer secret-c"})
    assert response.status_code == 429
    assert not api.world.audit


@pytest.mark.parametrize("size", [100, 190_000], ids=["known when it was read", "known from its headers"])
async def test_an_upload_without_room_is_not_stored(api: Api, http: httpx2.AsyncClient, size: int) -> None:
    api.world.limits.limits[LimitName.STORED_BYTES, ORGANISATION] = 99
    response = await http.post("/v1/files", files={"file": ("a.txt", b"a" * size)})
    assert (response.status_code, response.headers["x-should-retry"]) == (429, "false"), response.text
    assert not api.world.files.content


async def test_a_retried_upload_gets_the_response_of_its_first_attempt(api: Api, http: httpx2.AsyncClient) -> None:
    api.world.limits.limits[LimitName.STORED_BYTES, ORGANISATION] = 100
    upload: Mapping[str, Any] = {"files": {"file": ("a.txt", b"a" * 100)}, "headers": {"idempotency-key": "one"}}
    first = await http.post("/v1/files", **upload)
    api.world.limits.used[LimitName.STORED_BYTES] = 100
    assert (first.status_code, (await http.post("/v1/files", **upload)).json()) == (200, first.json())
