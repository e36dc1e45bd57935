"""The feed of an organisation with real API processes: who sees what, and a process that dies before it sends."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from bench.support.cluster import Cluster, open_cluster

from footplate.stack import Stack

pytestmark = [pytest.mark.timing, pytest.mark.requirement("O10")]

PATH = "/v1/events/stream"


@pytest.fixture(scope="module")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    async with open_cluster(apis=2, workers=0, stack=stack) as running:
        yield running


class _Reader:
    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()
        self.position = 0
        self.changes: list[dict[str, Any]] = []

    async def read_until(self, session_id: str, event_type: str) -> dict[str, Any]:
        async with asyncio.timeout(20):
            while True:
                change = await self._read_frame()
                if (change.get("session_id"), change["type"]) == (session_id, event_type):
                    return change

    async def _read_frame(self) -> dict[str, Any]:
        async for line in self._lines:
            if line.startswith("id: "):
                self.position = int(line[4:])
            elif line.startswith("data: "):
                self.changes.append(json.loads(line[6:]))
                return self.changes[-1]
        raise AssertionError("the stream ended")


def _connect(cluster: Cluster, *, key: str | None = None, api: int = 0) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=cluster.base_urls[api], headers={"x-api-key": key or cluster.key}, timeout=30)


@asynccontextmanager
async def _open_feed(http: httpx2.AsyncClient, **params: Any) -> AsyncIterator[_Reader]:
    async with http.stream("GET", PATH, params=params) as response:
        assert response.status_code == 200
        yield _Reader(response)


async def _post(http: httpx2.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    response = await http.post(path, json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def _create_session(http: httpx2.AsyncClient, **fields: Any) -> str:
    agent = await _post(http, "/v1/agents", name="a", model="claude-sonnet-5")
    environment = await _post(http, "/v1/environments", name=f"e-{agent['id']}")
    session = await _post(http, "/v1/sessions", agent=agent["id"], environment_id=environment["id"], **fields)
    return str(session["id"])


async def test_a_member_sees_a_session_while_it_may(cluster: Cluster) -> None:
    async with _connect(cluster) as admin:
        member = await _post(admin, "/v1/members", name="ada", roles=["member"])
        team = await _post(admin, "/v1/teams", name="platform")
        key = await _post(admin, "/v1/api_keys", name="k", member_id=member["id"], roles=["member"])
        async with (
            _connect(cluster, key=key["secret"], api=1) as http,
            _open_feed(http) as reader,
            _open_feed(admin) as everything,
        ):
            private = await _create_session(admin, visibility="private", title="Secret plans")
            of_team = await _create_session(admin, visibility="team", team_id=team["id"])
            shown = await _create_session(admin, title="Open")
            assert (await reader.read_until(shown, "session.created"))["session_title"] == "Open"
            await everything.read_until(private, "session.created")
            await _post(admin, f"/v1/teams/{team['id']}", add_member_ids=[member["id"]])
            # The rights of an open stream are checked every few seconds.
            async with asyncio.timeout(20):
                while not any(change.get("session_id") == of_team for change in reader.changes):
                    await _post(admin, f"/v1/sessions/{of_team}", metadata={"n": str(len(reader.changes))})
                    await _post(admin, f"/v1/sessions/{shown}", metadata={"n": str(len(reader.changes))})
                    await reader.read_until(shown, "session.updated")
            await _post(admin, f"/v1/sessions/{shown}", visibility="private")
            assert (await admin.delete(f"/v1/sessions/{shown}")).status_code == 200
            assert (await admin.delete(f"/v1/sessions/{private}")).status_code == 200
            last = await _create_session(admin)
            await reader.read_until(last, "session.created")
            assert not any(change["type"] == "session.deleted" for change in reader.changes)
            assert private not in json.dumps(reader.changes)
            assert "Secret" not in json.dumps(reader.changes)
            await everything.read_until(private, "session.deleted")


async def test_a_process_that_dies_after_numbering_loses_no_change(cluster: Cluster) -> None:
    async with _connect(cluster, api=0) as first, _connect(cluster, api=1) as second:
        async with _open_feed(first) as reader:
            before = await _create_session(second)
            await reader.read_until(before, "session.created")
            (cluster.failpoints / "feed_numbered").write_text("kill")
            lost = await _create_session(second)
            with pytest.raises((httpx2.HTTPError, AssertionError)):
                await reader.read_until(lost, "session.created")
        assert not (cluster.failpoints / "feed_numbered").exists()
        async with _open_feed(second, after=reader.position) as resumed:
            await resumed.read_until(lost, "session.created")
            assert [change["session_id"] for change in resumed.changes] == [lost]
    await cluster.restart_api(0)
