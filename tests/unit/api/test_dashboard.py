"""The built dashboard: its files, its pages, their headers, and the paths that remain the API's."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from footplate.api.routes.dashboard import NONCE_PLACEHOLDER, create_dashboard_route

NAVIGATION = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    build = tmp_path / "dashboard"
    (build / "assets").mkdir(parents=True)
    (build / "index.html").write_bytes(b'<meta name="csp-nonce" content="' + NONCE_PLACEHOLDER + b'">')
    (build / "assets" / "app-1.js").write_text("plain")
    (build / "assets" / "app-1.js.br").write_text("brotli")
    (build / "assets" / "app-1.js.gz").write_text("gzip")
    (build / "theme.js").write_text("theme")
    (tmp_path / "secret").write_text("secret")
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.router.routes.append(create_dashboard_route(build))
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://footplate.test") as http:
        yield http


async def test_every_page_gets_a_new_nonce_and_a_strict_policy(client: httpx2.AsyncClient) -> None:
    nonces = set()
    for path in ("/", "/sessions", "/sessions/sesn_1?tab=changes", "/index.html"):
        response = await client.get(path, headers=NAVIGATION)
        assert response.status_code == 200
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-content-type-options"] == "nosniff"
        policy = response.headers["content-security-policy"]
        nonce = response.text.partition('content="')[2].rstrip('">')
        assert f"'nonce-{nonce}'" in policy
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "frame-ancestors 'none'" in policy
        nonces.add(nonce)
    assert len(nonces) == 4


@pytest.mark.parametrize(
    ("accepted", "body", "encoding"),
    [
        ("gzip, deflate, br", "brotli", "br"),
        ("gzip", "gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip", "gzip"),
        ("", "plain", None),
    ],
)
async def test_hashed_files_are_immutable_and_precompressed(
    client: httpx2.AsyncClient, accepted: str, body: str, encoding: str | None
) -> None:
    async with client.stream("GET", "/assets/app-1.js", headers={"accept-encoding": accepted}) as response:
        raw = b"".join([chunk async for chunk in response.aiter_raw()])
    assert raw.decode() == body
    assert response.headers.get("content-encoding") == encoding
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-type"].startswith("text/javascript")


async def test_other_files_are_revalidated(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/theme.js")).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    ["/assets/app-2.js", "/assets/%2e%2e/%2e%2e/secret", "/%2e%2e/secret", "/..%2fsecret", "/v1/unknown", "/livez"],
)
async def test_other_paths_are_not_pages(client: httpx2.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert response.status_code == 404
    assert "secret" not in response.text


async def test_a_program_gets_no_page(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/sessions", headers={"accept": "application/json"})).status_code == 404


async def test_without_a_build_the_page_states_how_to_build_it(tmp_path: Path) -> None:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.router.routes.append(create_dashboard_route(tmp_path))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://footplate.test") as http:
        response = await http.get("/", headers=NAVIGATION)
    assert response.status_code == 503
    assert "just web-install web-build" in response.text
