"""Measures how long a key works after it was revoked or replaced, or after its member was disabled or lost its roles.

On every replica, the key has an open stream of server-sent events and an open WebSocket, and requests arrive all the
time, so that its validity is cached when it changes.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx2
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from bench.support.roles.issued_keys import EFFECT_SECONDS, KeyIssuer

_REQUEST_INTERVAL: Final = 0.25
_CLOSE_REVOKED: Final = 1008
_PATIENCE: Final = 30.0


@dataclass(frozen=True, slots=True)
class _OwnedKey:
    member_id: str
    key_id: str
    secret: str


_Change = Callable[[KeyIssuer, _OwnedKey], Awaitable[None]]
CHANGES: Final[Mapping[str, tuple[_Change, int]]] = {
    "revoked": (lambda issuer, key: issuer.revoke(key.key_id), httpx2.codes.UNAUTHORIZED),
    "without roles": (
        lambda issuer, key: issuer.update_member(key.member_id, roles=["none"]),
        httpx2.codes.FORBIDDEN,
    ),
    "rotated": (lambda issuer, key: issuer.rotate(key.key_id), httpx2.codes.UNAUTHORIZED),
    "of a disabled member": (
        lambda issuer, key: issuer.update_member(key.member_id, disabled=True),
        httpx2.codes.UNAUTHORIZED,
    ),
}
"""Changes after which a key must not work, each with the status of later requests."""


@dataclass(slots=True)
class KeyChangeFindings:
    keys: int = 0
    stream_seconds: list[float] = field(default_factory=list)
    """From the change to the end of each stream."""
    request_seconds: list[float] = field(default_factory=list)
    """From the change to the last accepted request, for each replica."""
    faults: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Watch:
    """What happens to the requests and streams of one key, in seconds of the monotonic clock."""

    last_accepted: dict[str, float] = field(default_factory=dict)
    first_refused: dict[str, float] = field(default_factory=dict)
    ended: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


async def measure_change(
    findings: KeyChangeFindings, base_urls: list[str], issuer: KeyIssuer, session_id: str, change_name: str
) -> None:
    change, status = CHANGES[change_name]
    member_id = await issuer.create_member("viewer")
    key = _OwnedKey(member_id, *await issuer.create_key(member_id, "viewer"))
    watch = _Watch()
    opened = asyncio.Barrier(2 * len(base_urls) + 1)
    async with asyncio.TaskGroup() as group:
        streams = [group.create_task(_follow_events(watch, url, key.secret, session_id, opened)) for url in base_urls]
        streams += [group.create_task(_follow_socket(watch, url, key.secret, session_id, opened)) for url in base_urls]
        requests = [group.create_task(_send_requests(watch, url, key.secret, status)) for url in base_urls]
        async with asyncio.timeout(_PATIENCE):
            await opened.wait()
        await asyncio.sleep(random.uniform(0.5, 2.5))
        changed_at = time.monotonic()
        await change(issuer, key)
        await asyncio.wait(streams, timeout=_PATIENCE)
        await asyncio.sleep(max(0.0, changed_at + EFFECT_SECONDS + 1 - time.monotonic()))
        open_streams = [each for each in streams if not each.done()]
        for task in (*open_streams, *requests):
            task.cancel()
    findings.keys += 1
    findings.stream_seconds += [at - changed_at for at in watch.ended]
    findings.request_seconds += [at - changed_at for at in watch.last_accepted.values()]
    if open_streams:
        watch.faults.append(f"{len(open_streams)} streams stayed open")
    if len(watch.first_refused) != len(base_urls):
        watch.faults.append("a replica refused no request")
    findings.faults += [f"a key {change_name}: {fault}" for fault in watch.faults]


async def _follow_events(watch: _Watch, url: str, secret: str, session_id: str, opened: asyncio.Barrier) -> None:
    path = f"/v1/sessions/{session_id}/events/stream"
    async with _client(url, secret) as http, http.stream("GET", path) as response:
        response.raise_for_status()
        await opened.wait()
        text = "".join([part async for part in response.aiter_text()])
    watch.ended.append(time.monotonic())
    if "event: error" not in text or "authentication_error" not in text:
        watch.faults.append(f"a stream ended without the reason: {text[-200:]!r}")


async def _follow_socket(watch: _Watch, url: str, secret: str, session_id: str, opened: asyncio.Barrier) -> None:
    address = f"{url.replace('http', 'ws', 1)}/v1/sessions/{session_id}/ws"
    async with connect(address, additional_headers={"authorization": f"Bearer {secret}"}) as socket:
        await opened.wait()
        try:
            while True:
                await socket.recv()
        except ConnectionClosed as closed:
            watch.ended.append(time.monotonic())
            if closed.rcvd is None or closed.rcvd.code != _CLOSE_REVOKED:
                watch.faults.append(f"a WebSocket was closed with {closed}")


async def _send_requests(watch: _Watch, url: str, secret: str, refusal: int) -> None:
    """Sends requests all the time, until it is cancelled."""
    async with _client(url, secret) as http:
        while True:
            sent_at = time.monotonic()
            response = await http.get("/v1/agents", params={"limit": 1})
            if response.is_success:
                watch.last_accepted[url] = sent_at
                if url in watch.first_refused:
                    watch.faults.append("a request was accepted after one had been refused")
            elif response.status_code == refusal:
                watch.first_refused.setdefault(url, sent_at)
            else:
                watch.faults.append(f"a request returned {response.status_code}: {response.text[:200]}")
            await asyncio.sleep(_REQUEST_INTERVAL)


def _client(url: str, secret: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=url, headers={"authorization": f"Bearer {secret}"}, trust_env=False, timeout=_PATIENCE
    )
