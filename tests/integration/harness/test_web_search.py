"""web_search with each provider that an operator can choose, simulated by a real server on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest
import structlog
from inline_snapshot import snapshot

from footplate.domain.ports.harness import SearchProvider, WebAccess
from footplate.harness.native.tool_failure_error import ToolFailure
from footplate.harness.native.web.web_tools import WebTools

from .web_server import PageResponse, PageServer, ok, redirect, silent

KEY = "very-secret-key"
FOUND = {
    "results": [
        {"title": "Scones &amp; tea", "url": "https://tea.example/1", "content": "How to  bake\n them."},
        {"url": "https://tea.example/2"},
        *({"title": f"t{number}", "url": f"https://x.example/{number}", "content": ""} for number in range(20)),
    ]
}
BRAVE = {
    "type": "search",
    "web": {
        "results": [{"title": "A", "url": "https://a.example/?x=1", "description": "the <strong>best</strong> &lt; b"}]
    },
}


@pytest.fixture
async def pages() -> AsyncIterator[PageServer]:
    async with PageServer() as server:
        yield server


def searxng(pages: PageServer, *, password: str = "", seconds: float = 5) -> WebTools:
    userinfo = f"me:{password}@" if password else ""
    url = f"http://{userinfo}127.0.0.1:{pages.port}/sx/"
    return WebTools(WebAccess(search=SearchProvider("searxng", url), max_seconds=seconds))


def brave(pages: PageServer, *, seconds: float = 5) -> WebTools:
    provider = SearchProvider("brave", pages.url("/res/v1/web/search"), KEY)
    return WebTools(WebAccess(search=provider, max_seconds=seconds))


async def test_a_searxng_search(pages: PageServer) -> None:
    """The operator's search server is usually internal, so the address rule for pages does not apply to it."""
    pages.responses["/sx/search"] = ok(json.dumps(FOUND).encode(), "application/json")
    text = await searxng(pages).search("scones & tea")
    assert text.split("\n\n")[:3] == snapshot(
        [
            """\
1. Scones & tea
https://tea.example/1
How to bake them.\
""",
            """\
2. (no title)
https://tea.example/2\
""",
            """\
3. t0
https://x.example/0\
""",
        ]
    )
    assert len(text.split("\n\n")) == 10
    (seen,) = pages.seen
    assert parse_qs(urlsplit(seen.target).query) == {"q": ["scones & tea"], "format": ["json"]}
    assert "authorization" not in seen.headers


async def test_a_brave_search(pages: PageServer) -> None:
    pages.responses["/res/v1/web/search"] = ok(json.dumps(BRAVE).encode(), "application/json")
    assert await brave(pages).search("best") == "1. A\nhttps://a.example/?x=1\nthe best < b"
    (seen,) = pages.seen
    assert parse_qs(urlsplit(seen.target).query) == {"q": ["best"], "count": ["10"]}
    assert seen.headers["x-subscription-token"] == KEY


async def test_a_search_without_results(pages: PageServer) -> None:
    pages.responses["/sx/search"] = ok(b'{"results": []}', "application/json")
    pages.responses["/res/v1/web/search"] = ok(b'{"type": "search"}', "application/json")
    assert await searxng(pages).search("x") == await brave(pages).search("x") == "No results."


async def test_a_search_without_a_provider_fails_with_a_reason() -> None:
    with pytest.raises(ToolFailure, match=r"this server has no search provider.*FOOTPLATE_SEARCH_PROVIDER"):
        await WebTools().search("x")


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (ok(b"", status="403 Forbidden"), "refused the request with status 403. Do not try again"),
        (ok(b"", status="401 Unauthorized"), "Do not try again"),
        (ok(b"", status="429 Too Many Requests"), "rate limit"),
        (ok(b"", status="500 Oops"), "refused the request with status 500. Try other keywords, or try again later"),
        (redirect("/elsewhere"), "refused the request with status 302"),
        (ok(b"<html>"), "could not be parsed"),
        (ok(b"[]"), "could not be parsed"),
        (ok(b'{"results": [{"title": "no url"}]}'), "could not be parsed"),
        (ok(b'{"results": {"a": 1}}'), "could not be parsed"),
        (ok(b"no gzip", extra="content-encoding: gzip\r\n"), "does not respond"),
        (b"garbage\r\n\r\n", "does not respond"),
        (b"", "does not respond"),
        (silent, "does not respond"),
    ],
)
async def test_a_providers_failure_is_reported_without_secrets(
    pages: PageServer, response: PageResponse, why: str
) -> None:
    pages.responses |= {"/sx/search": response, "/res/v1/web/search": response}
    for web in (searxng(pages, password=KEY, seconds=1), brave(pages, seconds=1)):
        with structlog.testing.capture_logs() as logged, pytest.raises(ToolFailure) as failed:
            await web.search("x")
        assert why in str(failed.value)
        assert KEY not in str(failed.value) + repr(logged) + repr(failed.value.__cause__)
        assert str(pages.port) not in str(failed.value)
    assert KEY not in repr(SearchProvider("brave", f"http://me:{KEY}@x/", KEY))


async def test_an_unreachable_provider_is_reported() -> None:
    web = WebTools(WebAccess(search=SearchProvider("searxng", "http://127.0.0.1:1")))
    with pytest.raises(ToolFailure, match=r"\(searxng\) does not respond \(ConnectError\)"):
        await asyncio.wait_for(web.search("x"), 5)
