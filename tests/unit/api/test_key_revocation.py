"""A stream ends when the API key that opened it is revoked or loses its roles."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from footplate.api.streams import key_revocation
from footplate.domain.errors import Temporary, Unauthenticated

from .conftest import Api
from .fake_services import KEYS

pytestmark = pytest.mark.timing


@pytest.mark.parametrize("loses", ["key", "roles"])
async def test_a_stream_does_not_outlive_its_key(
    api: Api, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, loses: str
) -> None:
    monkeypatch.setattr(key_revocation, "CHECK_SECONDS", 0.01)
    agent = (await http.post("/v1/agents", json={"name": "a", "model": "m"})).json()["id"]
    environment = (await http.post("/v1/environments", json={"name": "e"})).json()["id"]
    body = {"agent": agent, "environment_id": environment}
    session_id = (await http.post("/v1/sessions", json=body)).json()["id"]
    opened = asyncio.Event()

    async def silence() -> AsyncIterator[bytes]:
        opened.set()
        await asyncio.get_running_loop().create_future()
        yield b""

    api.tails.forever = silence
    streaming = asyncio.create_task(http.get(f"/v1/sessions/{session_id}/events/stream"))
    await opened.wait()
    api.keys.failure = Temporary("The database is away.")
    await asyncio.sleep(0.1)
    assert not streaming.done()
    api.keys.failure = Unauthenticated("The API key is not known.") if loses == "key" else None
    for secret in KEYS if loses == "roles" else ():
        monkeypatch.setitem(KEYS, secret, replace(KEYS[secret], roles=frozenset()))
    async with asyncio.timeout(20):
        response = await streaming
    assert "event: error" in response.text
    assert "authentication_error" in response.text
    assert api.tails.closed == 1
