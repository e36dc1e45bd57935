"""Searches the web through the provider that the operator configured: SearXNG, or Brave with an API key.

Results and errors never contain the API key or the address of the provider.
"""

import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import httpx2
import structlog

from footplate.domain.ports.harness import SearchProvider
from footplate.harness.native.tool_failure_error import ToolFailure
from footplate.harness.native.web.download import Download, Downloader

MAX_RESULTS: Final = 10
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_MAX_SNIPPET_LENGTH: Final = 1_000
_MAX_FIELD_LENGTH: Final = 10_000
"""Maximum characters of a result's field that are processed."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SearchResult:
    title: str
    url: str
    snippet: str


async def search_web(downloads: Downloader, provider: SearchProvider | None, query: str) -> str:
    if provider is None:
        raise ToolFailure(
            "web_search is not available: this server has no search provider. Continue without it. If you "
            "know a URL, use web_fetch if it is available. (For the operator: set FOOTPLATE_SEARCH_PROVIDER.)"
        )
    url, params, headers = _build_request(provider, query)
    try:
        response = await downloads.download_trusted(url, params, headers)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, zlib.error) as error:
        # The error's message may contain the provider's URL, and the URL may contain a password.
        log.warning("search failed", action="search.failed", provider=provider.name, error=type(error).__name__)
        raise ToolFailure(
            f"The search provider ({provider.name}) does not respond ({type(error).__name__}). Try again later."
        ) from None
    return _format_results(_parse_results(provider, response))


def _build_request(provider: SearchProvider, query: str) -> tuple[str, Mapping[str, str], Mapping[str, str]]:
    if provider.name == "brave":
        params = {"q": query, "count": str(MAX_RESULTS)}
        return provider.url, params, {"accept": "application/json", "x-subscription-token": provider.api_key or ""}
    headers = {"accept": "application/json"}
    if provider.api_key:  # SearXNG has no API keys, but a gateway in front of it may
        headers["authorization"] = f"Bearer {provider.api_key}"
    return f"{provider.url.rstrip('/')}/search", {"q": query, "format": "json"}, headers


def _parse_results(provider: SearchProvider, response: Download) -> Sequence[SearchResult]:
    if response.status != HTTPStatus.OK:
        log.warning(
            "search provider refused a request", action="search.refused", provider=provider.name, status=response.status
        )
        raise ToolFailure(_error_message(provider, response.status))
    try:
        body: Any = json.loads(response.data)
        found = body["web"]["results"] if provider.name == "brave" and "web" in body else body.get("results", [])
        snippet = "description" if provider.name == "brave" else "content"
        return [
            SearchResult(_strip_tags(item.get("title")), str(item["url"]), _strip_tags(item.get(snippet)))
            for item in found[:MAX_RESULTS]
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ToolFailure(f"The response of the search provider ({provider.name}) could not be parsed.") from None


def _error_message(provider: SearchProvider, status: int) -> str:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return f"The rate limit of the search provider ({provider.name}) is exceeded. Try again later."
    message = f"The search provider ({provider.name}) refused the request with status {status}."
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        fix = "add json to search.formats in its settings.yml" if provider.name == "searxng" else "check the API key"
        return f"{message} Do not try again. (For the operator: {fix}.)"
    return f"{message} Try other keywords, or try again later."


def _strip_tags(text: object) -> str:
    """The text without the tags that providers add to highlight matches."""
    return " ".join(html.unescape(_TAG.sub("", str(text or "")[:_MAX_FIELD_LENGTH])).split())[:_MAX_SNIPPET_LENGTH]


def _format_results(results: Sequence[SearchResult]) -> str:
    if not results:
        return "No results."
    return "\n\n".join(
        "\n".join(line for line in (f"{number}. {result.title or '(no title)'}", result.url, result.snippet) if line)
        for number, result in enumerate(results, start=1)
    )
