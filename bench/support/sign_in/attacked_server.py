"""The server under attack, and browsers that talk to it.

The server has the public name `footplate.example.com` with HTTPS, as behind a reverse proxy, and loopback names without
it. Each browser has an address of its own, which it sends as such a proxy does, so that the failed attempts of one
attack do not limit the next one.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg
import httpx2
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from bench.prove.figure import require
from bench.support.cluster import Cluster
from bench.support.sign_in.forged_provider import ForgedProvider

PUBLIC_URL: Final = "https://footplate.example.com"
NAVIGATION: Final = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
COOKIE: Final = "__Host-footplate"
_addresses = itertools.count(1)


@dataclass(slots=True)
class Server:
    cluster: Cluster
    provider: ForgedProvider
    database: "asyncpg.Connection[asyncpg.Record]"
    http: httpx2.AsyncClient
    session_id: str = ""

    @property
    def port(self) -> int:
        return self.cluster.ports[0]

    def browser(self) -> "Browser":
        number = next(_addresses)
        return Browser(self, {"x-forwarded-for": f"10.0.{number // 250}.{number % 250 + 1}"})

    def local_browser(self) -> "Browser":
        """A browser on the machine of the server, without a proxy."""
        return Browser(self, {}, f"http://127.0.0.1:{self.port}")

    async def call(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> dict[str, Any]:
        """Calls the server as a program with an API key, and expects success."""
        headers = {"x-api-key": key or self.cluster.key}
        response = await self.http.request(method, path, json=body, headers=headers)
        require(holds=response.is_success, otherwise=f"{method} {path}: {response.status_code} {response.text}")
        return dict(response.json())

    async def create_person(self, name: str, *, roles: list[str] | None = None, **key: Any) -> tuple[str, str, str]:
        """Returns the ids of a new member and its key, and the key."""
        member = await self.call("POST", "/v1/members", {"name": name, "roles": roles or ["member"]})
        fields = {"name": name, "member_id": member["id"], "roles": roles or ["member"], **key}
        created = await self.call("POST", "/v1/api_keys", fields)
        return member["id"], created["id"], created["secret"]


@dataclass(slots=True)
class Browser:
    server: Server
    headers: dict[str, str]
    origin: str = PUBLIC_URL
    cookies: dict[str, str] = field(default_factory=dict)
    csrf: str = ""

    async def send(
        self, method: str, path: str, *, headers: Mapping[str, str | None] | None = None, **options: Any
    ) -> httpx2.Response:
        """Sends a request with the cookies and nothing else that a browser adds. None removes a header."""
        sent = {"host": urlsplit(self.origin).netloc, **self.headers, **(headers or {})}
        if self.cookies and "cookie" not in sent:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        present = {name: value for name, value in sent.items() if value is not None}
        response = await self.server.http.request(method, path, headers=present, **options)
        self.server.http.cookies.clear()
        for line in response.headers.get_list("set-cookie"):
            for name, morsel in SimpleCookie(line).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
        return response

    async def change(self, method: str, path: str, body: Any = None, **headers: str | None) -> httpx2.Response:
        """Sends a change as a page of the server does."""
        own = {"origin": self.origin, "sec-fetch-site": "same-origin", "x-footplate-csrf": self.csrf}
        return await self.send(method, path, headers={**own, **headers}, json=body)

    async def sign_in_with_key(self, api_key: str) -> httpx2.Response:
        response = await self.change("POST", "/v1/browser_sessions", {"api_key": api_key})
        if response.is_success:
            self.csrf = response.json()["csrf_token"]
        return response

    async def start_oidc(self) -> str:
        """Returns the address of the provider."""
        response = await self.send("GET", "/v1/sign_in/oidc?return_to=/inbox")
        require(holds=response.status_code == httpx2.codes.SEE_OTHER, otherwise=response.text)
        return str(response.headers["location"])

    async def sign_in_with_oidc(self, account: str) -> httpx2.Response:
        return await self.follow_callback(self.server.provider.authorize(await self.start_oidc(), account))

    async def follow_callback(self, url: str) -> httpx2.Response:
        parts = urlsplit(url)
        return await self.send("GET", f"{parts.path}?{parts.query}", headers=NAVIGATION)

    async def is_signed_in(self) -> bool:
        response = await self.send("GET", "/v1/me")
        if response.is_success:
            self.csrf = response.json()["csrf_token"] or ""
        return response.is_success

    async def opens_socket(self, **headers: str | None) -> bool:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"cookie": cookie, "origin": self.origin, **headers}
        present = [(name, value) for name, value in sent.items() if value is not None]
        url = f"ws://{urlsplit(self.origin).netloc}/v1/sessions/{self.server.session_id}/ws"
        try:
            async with connect(url, host="127.0.0.1", port=self.server.port, proxy=None, additional_headers=present):
                return True
        except InvalidStatus:
            return False
