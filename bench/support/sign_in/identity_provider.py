"""Runs the real `oidc-provider` from npm as an identity provider, and signs people in there as a browser does."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx2

from bench.prove.figure import NotHeld
from bench.support.sdk import npm
from footplate.stack.free_ports import LOOPBACK, find_free_port

CLIENT_ID: Final = "footplate"
CLIENT_SECRET: Final = "client-secret"
_SOURCE: Final = Path(__file__).parent / "provider"
_START_SECONDS: Final = 60.0
_MAX_STEPS: Final = 12
_ACTION: Final = re.compile(r'action="([^"]+)"')


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    issuer: str
    _process: asyncio.subprocess.Process

    async def rotate_keys(self, *, keeps_old: bool) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"rotate\n" if keeps_old else b"replace\n")
        await self._process.stdin.drain()
        await _wait_for(self._process, "rotated")

    async def sign_in(self, url: str, account: str, http: httpx2.AsyncClient | None = None) -> str:
        """Follows the authorization request as a browser, and returns the URL of the callback, without calling it."""
        if http is None:
            async with httpx2.AsyncClient(trust_env=False, timeout=30) as own:
                return await self.sign_in(url, account, own)
        for _ in range(_MAX_STEPS):
            if not url.startswith(self.issuer):
                return url
            response = await http.get(url)
            if response.is_redirect:
                url = urljoin(url, response.headers["location"])
                continue
            form = _ACTION.search(response.text)
            if form is None:
                raise NotHeld(f"the identity provider shows no form: {response.status_code} {response.text[:500]}")
            is_login = 'name="login"' in response.text
            fields = {"prompt": "login", "login": account, "password": "x"} if is_login else {"prompt": "consent"}
            submitted = await http.post(urljoin(url, form[1]), data=fields)
            url = urljoin(url, submitted.headers["location"])
        raise NotHeld("the identity provider did not come back")


@asynccontextmanager
async def run_identity_provider(base_url: str) -> AsyncIterator[IdentityProvider]:
    """Runs a provider for the Footplate server at `base_url`."""
    directory, port = await npm.install_packages(_SOURCE), find_free_port()
    program = directory / "provider.mjs"
    program.write_bytes((_SOURCE / "provider.mjs").read_bytes())
    process = await asyncio.create_subprocess_exec(
        *(npm.node(), program, str(port), f"{base_url}/v1/sign_in/oidc/callback", f"{base_url}/sign-in"),
        cwd=directory,
        env={"PATH": "/usr/bin:/bin", "NODE_ENV": "test"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_START_SECONDS):
            await _wait_for(process, "ready")
        yield IdentityProvider(f"http://{LOOPBACK}:{port}", process)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def _wait_for(process: asyncio.subprocess.Process, line: str) -> None:
    assert process.stdout is not None
    while found := await process.stdout.readline():
        if found.decode().strip() == line:
            return
    raise NotHeld(f"the identity provider ended before it was {line}")


def is_callback(url: str, base_url: str) -> bool:
    return urlsplit(url)._replace(query="", fragment="").geturl() == f"{base_url}/v1/sign_in/oidc/callback"
