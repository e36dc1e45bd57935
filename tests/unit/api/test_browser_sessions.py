"""Browser sessions over HTTP: the cookie, the CSRF token, the origin, and who may use which secret how."""

from collections.abc import AsyncIterator, Mapping

import httpx2
import pytest

from .conftest import BASE, Api, make_client

OWN = {"origin": BASE}
COOKIE = "footplate_80"


@pytest.fixture
async def browser(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    async with make_client(api.app, None) as client:
        yield client


async def sign_in(browser: httpx2.AsyncClient, **headers: str) -> dict[str, str]:
    """Signs in with an API key, and returns the headers that a change needs."""
    response = await browser.post("/v1/browser_sessions", json={"api_key": "secret-a"}, headers={**OWN, **headers})
    assert response.status_code == 200, response.text
    return {**OWN, **headers, "x-footplate-csrf": response.json()["csrf_token"]}


async def test_the_cookie_authenticates_like_the_key(api: Api, browser: httpx2.AsyncClient) -> None:
    response = await browser.post("/v1/browser_sessions", json={"api_key": "secret-a"}, headers=OWN)
    (cookie,) = response.headers.get_list("set-cookie")
    assert cookie.startswith(f"{COOKIE}=fpb_")
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert "Secure" not in cookie
    assert response.headers["cache-control"] == "no-store"
    me = (await browser.get("/v1/me")).json()
    assert me == response.json()
    assert (me["type"], me["id"], me["role"], me["organisation_id"]) == ("principal", "key_a", "admin", "org_a")
    assert me["api_key_id"] == "key_x"
    changed = await browser.post("/v1/teams", json={"name": "t"}, headers={**OWN, "x-footplate-csrf": me["csrf_token"]})
    assert changed.status_code == 200
    async with make_client(api.app) as program:
        own = (await program.get("/v1/me")).json()
    assert (own["id"], own["csrf_token"], own["session_id"]) == ("key_a", None, None)


async def test_over_https_the_cookie_is_secure_and_bound_to_the_host(api: Api, browser: httpx2.AsyncClient) -> None:
    response = await browser.post(
        "/v1/browser_sessions", json={"api_key": "secret-a"}, headers={"origin": "https://footplate.test"}
    )
    (cookie,) = response.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-footplate=fpb_")
    assert "Secure" in cookie
    secret = cookie.partition("=")[2].partition(";")[0]
    assert (await browser.get("/v1/me", headers={"cookie": f"__Host-footplate={secret}"})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        OWN,
        {**OWN, "x-footplate-csrf": ""},
        {**OWN, "x-footplate-csrf": "wrong"},
        {"origin": None},
        {"origin": "http://evil.test"},
        {"origin": "null"},
        {"origin": "http://footplate.test:8080"},
        {"origin": f"{BASE}.evil.test"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
    ],
)
async def test_a_change_by_cookie_needs_token_and_origin(
    api: Api, browser: httpx2.AsyncClient, headers: Mapping[str, str | None]
) -> None:
    full = await sign_in(browser)
    sent = headers if headers == {} or "x-footplate-csrf" in headers or headers == OWN else {**full, **headers}
    present = {name: value for name, value in sent.items() if value is not None}
    response = await browser.post("/v1/teams", json={"name": "t"}, headers=present)
    assert response.status_code == 403
    assert response.json()["error"]["code"] in {"csrf_token_invalid", "foreign_request"}
    assert api.world.members.teams == {}


async def test_the_token_of_another_session_is_refused(api: Api, browser: httpx2.AsyncClient) -> None:
    await sign_in(browser)
    async with make_client(api.app, None) as other:
        foreign = await sign_in(other)
    assert (await browser.post("/v1/teams", json={"name": "t"}, headers=foreign)).status_code == 403


async def test_signing_in_needs_the_own_origin(browser: httpx2.AsyncClient) -> None:
    for headers in ({}, {"origin": "http://evil.test"}, {**OWN, "sec-fetch-site": "cross-site"}):
        response = await browser.post("/v1/browser_sessions", json={"api_key": "secret-a"}, headers=headers)
        assert response.status_code == 403
        assert "set-cookie" not in response.headers


async def test_a_session_secret_is_no_api_key_and_a_key_is_no_cookie(browser: httpx2.AsyncClient) -> None:
    await sign_in(browser)
    secret = browser.cookies[COOKIE]
    browser.cookies.clear()
    for headers in (
        {"authorization": f"Bearer {secret}"},
        {"x-api-key": secret},
        {"cookie": f"{COOKIE}=secret-a"},
        {"cookie": f"{COOKIE}={secret}; {COOKIE}=fpb_other"},
        {"cookie": f"footplate_81={secret}"},
    ):
        assert (await browser.get("/v1/me", headers=headers)).status_code == 401
    assert (await browser.get("/v1/me", headers={"cookie": f"{COOKIE}={secret}"})).status_code == 200


async def test_signing_in_again_ends_the_session_before(api: Api, browser: httpx2.AsyncClient) -> None:
    await sign_in(browser)
    first = browser.cookies[COOKIE]
    await sign_in(browser)
    assert browser.cookies[COOKIE] != first
    async with make_client(api.app, None) as other:
        assert (await other.get("/v1/me", headers={"cookie": f"{COOKIE}={first}"})).status_code == 401


async def test_sessions_are_listed_and_ended(api: Api, browser: httpx2.AsyncClient) -> None:
    headers = await sign_in(browser, **{"user-agent": "Browser \x07 1"})
    async with make_client(api.app, None) as other:
        await sign_in(other)
        listed = (await browser.get("/v1/browser_sessions")).json()["data"]
        assert [(each["is_current"], each["user_agent"]) for each in listed if each["is_current"]] == [
            (True, "Browser ? 1")
        ]
        (second,) = [each["id"] for each in listed if not each["is_current"]]
        assert (await browser.delete(f"/v1/browser_sessions/{second}", headers=headers)).status_code == 200
        assert (await other.get("/v1/me")).status_code == 401
    ended = await browser.delete("/v1/browser_sessions/current", headers=headers)
    assert ended.json()["type"] == "browser_session_ended"
    assert COOKIE not in browser.cookies
    assert (await browser.get("/v1/me")).status_code == 401


async def test_a_one_time_code_works_once_and_only_on_this_machine(api: Api) -> None:
    local = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(api.app, client=("127.0.0.1", 1)), base_url="http://127.0.0.1:8700"
    )
    key, own = {"x-api-key": "secret-a"}, {"origin": "http://127.0.0.1:8700"}
    async with local:
        created = (await local.post("/v1/browser_sessions/one_time_codes", headers=key)).json()
        assert created["url"] == f"http://127.0.0.1:8700/sign-in?code={created['code']}"
        body = {"one_time_code": created["code"]}
        for headers in ({**own, "x-forwarded-for": "10.0.0.1"}, {"host": "footplate.test", "origin": BASE}):
            assert (await local.post("/v1/browser_sessions", json=body, headers=headers)).status_code == 403
        assert (await local.post("/v1/browser_sessions", json=body, headers=own)).status_code == 200
        assert (await local.post("/v1/browser_sessions", json=body, headers=own)).status_code == 401
        csrf = (await local.get("/v1/me")).json()["csrf_token"]
        by_cookie = await local.post("/v1/browser_sessions/one_time_codes", headers={**own, "x-footplate-csrf": csrf})
        assert by_cookie.status_code == 401
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(api.app, client=("10.0.0.7", 1)), base_url="http://127.0.0.1:8700"
    ) as remote:
        assert (await remote.post("/v1/browser_sessions/one_time_codes", headers=key)).status_code == 403


async def test_exactly_one_way_to_sign_in_is_named(browser: httpx2.AsyncClient) -> None:
    for body in ({}, {"api_key": "a", "one_time_code": "b"}, {"api_key": ""}):
        assert (await browser.post("/v1/browser_sessions", json=body, headers=OWN)).status_code == 400
    assert (await browser.get("/v1/sign_in")).json() == {"type": "sign_in_methods", "api_key": True, "oidc": None}
