"""Requests that a browser sends for the web pages of other sites are refused before they are processed."""

import pytest

from .conftest import Api, client_of


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/agents", "/livez", "/openapi.json", "/nothing"])
async def test_they_are_refused_in_the_envelope(api: Api, headers: dict[str, str], path: str) -> None:
    async with client_of(api.app) as http:
        answer = await http.get(path, headers=headers)
    assert answer.status_code == 403
    error = answer.json()["error"]
    assert error["type"] == "permission_error"
    assert error["docs"].endswith("#foreign_request")
    assert answer.headers["request-id"] == answer.json()["request_id"]


async def test_nothing_is_created_by_a_form(api: Api) -> None:
    async with client_of(api.app) as http:
        headers = {"origin": "https://evil.example", "content-type": "text/plain"}
        answer = await http.post("/v1/agents", content=b'{"name": "x", "model": "m"}', headers=headers)
        assert answer.status_code == 403
        assert (await http.get("/v1/agents")).json()["data"] == []


async def test_our_own_origin_passes(api: Api) -> None:
    async with client_of(api.app) as http:
        assert (await http.get("/v1/agents", headers={"origin": "http://footplate.test"})).status_code == 200
