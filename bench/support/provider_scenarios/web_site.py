"""A web site on loopback for the agent's web tools. It responds to searches like SearXNG, and counts requests."""

import asyncio
import json
from collections import Counter
from http import HTTPStatus
from typing import Final, Self

from footplate.stack.free_ports import LOOPBACK

PAGE: Final = """<!doctype html><html><head><title>Tea room</title></head><body><h1>Menu</h1>
<p>We have <b>scones</b> and <a href="/cakes">cakes</a>.</p><script>alert("no")</script></body></html>"""
SEARCH_RESULTS: Final = {
    "results": [{"title": "Tea room", "url": "https://tea.example/", "content": "Scones and cakes."}]
}


class WebSite:
    def __init__(self) -> None:
        self.request_counts: Counter[str] = Counter()
        """Request counts by path and query."""
        self._port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}"

    def settings(self) -> dict[str, str]:
        """Returns the settings of the API and the workers that let agents use this site."""
        return {
            "FOOTPLATE_WEB_ALLOW": LOOPBACK,
            "FOOTPLATE_SEARCH_PROVIDER": "searxng",
            "FOOTPLATE_SEARCH_URL": self.url,
        }

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split(b" ")[1].decode()
            self.request_counts[target] += 1
            writer.write(_respond(target))
            await writer.drain()
        finally:
            writer.close()


def _respond(target: str) -> bytes:
    match target.partition("?")[0]:
        case "/menu":
            return _response(HTTPStatus.OK, "text/html", PAGE)
        case "/search":
            return _response(HTTPStatus.OK, "application/json", json.dumps(SEARCH_RESULTS))
        case _:
            return _response(HTTPStatus.NOT_FOUND, "text/plain", "There is no such page.")


def _response(status: HTTPStatus, content_type: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body
