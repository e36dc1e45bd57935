"""Requests that a browser sends for the web pages of other sites are refused before they are processed."""

import pytest

from .conftest import Api, make_client


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
async def test_cross_site_requests_are_refused_with_an_error_body(api: Api, headers: dict[str, str], path: str) -> None:
    async with make_client(api.app) as http:
        response = await http.get(path, headers=headers)
    assert response.status_code == 403
    error = response.json()["error"]
    assert error["type"] == "permission_error"
    assert error["docs"].endswith("#foreign_request")
    assert response.headers["request-id"] == response.json()["request_id"]


async def test_a_cross_site_form_creates_nothing(api: Api) -> None:
    async with make_client(api.app) as http:
        headers = {"origin": "https://evil.example", "content-type": "text/plain"}
        response = await http.post("/v1/agents", content=b'{"name": "x", "model": "m"}', headers=headers)
        assert response.status_code == 403
        assert (await http.get("/v1/agents")).json()["data"] == []


async def test_the_servers_own_origin_is_accepted(api: Api) -> None:
    async with make_client(api.app) as http:
        assert (await http.get("/v1/agents", headers={"origin": "http://footplate.test"})).status_code == 200
