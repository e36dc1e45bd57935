"""A disabled member's calls finish, nothing further starts in its name, and its successor gets all its work.

The member has private sessions: in some a call is running and further messages are queued, in some a call waits for
approval, and some are idle. It is disabled first without a successor. Then the worker is killed and started again, and
the work is handed over.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import anthropic
import httpx2

from bench.prove.figure import Figure, require
from bench.support.clients import TOOLSET, Client, raw_client
from bench.support.cluster import Cluster, open_cluster
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

_SETTINGS: Final = {"FOOTPLATE_SWEEP_INTERVAL": "1", "FOOTPLATE_LINGER": "1"}
_ROUNDS: Final = 10
_SESSIONS: Final = 3
"""Of each kind in a round."""
_CALL_SECONDS: Final = 4
_TIMEOUT_SECONDS: Final = 120.0
_REVOKED_SECONDS: Final = 5.0
_QUIET_SECONDS: Final = 5.0
"""Time in which the sweep would start a queued message several times."""
_ADD_LINE: Final = "echo x >> lines; wc -l < lines"


@dataclass(slots=True)
class _Counts:
    calls: int = 0
    approvals: int = 0
    queued: int = 0
    sessions: int = 0
    slowest_end: float = 0.0
    faults: list[str] = field(default_factory=list)

    def check(self, *, holds: bool, otherwise: str) -> None:
        if not holds:
            self.faults.append(otherwise)


@dataclass(frozen=True, slots=True)
class _Member:
    id: str
    name: str
    client: Client
    http: httpx2.AsyncClient


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    rounds = 1 if quick else _ROUNDS
    counts = _Counts()
    async with open_cluster(apis=2, environment=_SETTINGS) as cluster, raw_client(cluster) as admin:
        await cluster.model.install(
            "slow", replies([tool("bash", {"command": f"sleep {_CALL_SECONDS}; {_ADD_LINE}"})], [text("Done.")])
        )
        await cluster.model.install("line", replies([tool("bash", {"command": _ADD_LINE})], [text("Done.")]))
        for number in range(rounds):
            async with AsyncExitStack() as exits:
                await _Offboarding(cluster, admin, exits, counts).run(number)
            print(f"  {number + 1} of {rounds} rounds", flush=True)
    headline = (
        f"{rounds} members disabled: {counts.calls} calls finished, {counts.queued + counts.approvals} handed over, "
        "nothing lost"
    )
    if counts.faults:
        headline = f"{rounds} members disabled: {len(counts.faults)} faults"
    return Figure(
        headline=headline,
        summary=f"{rounds} members with {counts.sessions} private sessions were disabled: keys and streams ended "
        f"within {counts.slowest_end:.1f} s on two replicas; {counts.calls} running calls finished; {counts.queued} "
        f"queued messages waited, and after the hand-over ran in the successor's name; {counts.approvals} pending "
        "approvals stayed pending, and the successor's decision ran each call once; every event and file was the same "
        "afterwards" + (f"; faults: {'; '.join(counts.faults[:3])}" if counts.faults else ""),
        holds=not counts.faults and counts.slowest_end <= _REVOKED_SECONDS,
        details={"faults": [*counts.faults], "seconds": round(counts.slowest_end, 2)},
    )


class _Offboarding:
    def __init__(self, cluster: Cluster, admin: httpx2.AsyncClient, exits: AsyncExitStack, counts: _Counts) -> None:
        self._cluster = cluster
        self._admin = admin
        self._exits = exits
        self._counts = counts

    async def run(self, number: int) -> None:
        leaver, successor = [await self._create_member(f"{name} {number}") for name in ("leaver", "successor")]
        asking = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
        free_agent, asking_agent = await leaver.client.agent(), await leaver.client.agent(tools=[asking])
        running = [await self._start_call(leaver, free_agent) for _ in range(_SESSIONS)]
        waiting = [await self._request_approval(leaver, asking_agent) for _ in range(_SESSIONS)]
        idle = [await leaver.client.session(free_agent, extra_body={"visibility": "private"}) for _ in range(_SESSIONS)]
        upload = await leaver.http.post("/v1/files", files={"file": ("a", b"x")}, data={"visibility": "private"})
        everything = [*running, *waiting, *idle]
        self._counts.sessions += len(everything)

        ended = asyncio.create_task(self._wait_for_stream_end(leaver, idle[0]))
        await asyncio.sleep(1)  # the stream is open
        await self._update(leaver, {"disabled": True})
        await self._check_locked_out(leaver, ended)
        for session_id in running:
            await self._check_call_finished(session_id)
        await asyncio.sleep(_QUIET_SECONDS)
        for session_id in running:
            await self._check_stalled(session_id)
        for session_id in everything:
            hidden = await successor.http.get(f"/v1/sessions/{session_id}")
            self._counts.check(holds=hidden.status_code == 404, otherwise=f"private, but visible: {hidden.text}")
        before = {session_id: await self._read_events(self._admin, session_id) for session_id in everything}
        await self._cluster.kill_worker(0)
        await self._cluster.restart_worker(0)

        await self._update(leaver, {"disabled": True, "successor_id": successor.id})
        for session_id in everything:
            found = await self._read_events(successor.http, session_id)
            lost = found[: len(before[session_id])] != before[session_id]
            self._counts.check(holds=not lost, otherwise=f"{session_id}: events changed in the hand-over")
            session = (await successor.http.get(f"/v1/sessions/{session_id}")).json()
            self._counts.check(
                holds=session["owner"]["id"] == successor.id, otherwise=f"{session_id}: {session['owner']}"
            )
        for session_id in running:
            await self._check_handed_over(session_id, successor)
        for session_id in waiting:
            await self._check_approval(session_id, successor)
        content = await successor.http.get(f"/v1/files/{upload.json()['id']}/content")
        self._counts.check(holds=content.content == b"x", otherwise=f"the private file: {content.text}")

    async def _create_member(self, name: str) -> _Member:
        member = await self._post("/v1/members", {"name": name})
        secret = (await self._post("/v1/api_keys", {"name": name, "member_id": member["id"]}))["secret"]
        client = await self._exits.enter_async_context(Client(self._cluster, key=secret))
        http = await self._exits.enter_async_context(raw_client(self._cluster, key=secret, api=1))
        return _Member(member["id"], name, client, http)

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        response = await self._admin.post(path, json=body)
        require(holds=response.status_code == httpx2.codes.OK, otherwise=f"POST {path}: {response.text}")
        found: dict[str, Any] = response.json()
        return found

    async def _update(self, member: _Member, change: Mapping[str, Any]) -> None:
        await self._post(f"/v1/members/{member.id}", change)

    async def _start_call(self, member: _Member, agent: str) -> str:
        """Starts a slow call in a private session, and queues another message."""
        session_id = await member.client.session(agent, extra_body={"visibility": "private"})
        await member.client.send_text(session_id, "Go. [[script:slow]]")
        await self._wait(lambda: self._has_event(session_id, events.AGENT_TOOL_USE), f"{session_id}: no call began")
        await member.client.send_text(session_id, "Again. [[script:line]]")
        return session_id

    async def _request_approval(self, member: _Member, agent: str) -> str:
        session_id = await member.client.session(agent, extra_body={"visibility": "private"})
        await member.client.run_turn(session_id, "Go. [[script:line]]", patience=_TIMEOUT_SECONDS)
        return session_id

    async def _wait_for_stream_end(self, member: _Member, session_id: str) -> float:
        async with member.http.stream("GET", f"/v1/sessions/{session_id}/events/stream") as stream:
            async for _ in stream.aiter_bytes():
                pass
        return time.monotonic()

    async def _check_locked_out(self, member: _Member, stream_end: "asyncio.Task[float]") -> None:
        began = time.monotonic()

        async def is_refused() -> bool:
            refused = (await member.http.get("/v1/sessions")).status_code == httpx2.codes.UNAUTHORIZED
            try:
                await member.client.sdk.beta.agents.list(limit=1)
            except anthropic.AuthenticationError:
                return refused
            return False

        await self._wait(is_refused, f"the keys of {member.name} still work")
        self._counts.slowest_end = max(self._counts.slowest_end, time.monotonic() - began)
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            self._counts.slowest_end = max(self._counts.slowest_end, await stream_end - began)

    async def _check_call_finished(self, session_id: str) -> None:
        await self._wait(lambda: self._has_event(session_id, events.STATUS_IDLE), f"{session_id}: the turn did not end")
        outputs = await self._read_outputs(session_id)
        self._counts.check(holds=outputs == ["1"], otherwise=f"{session_id}: the running call returned {outputs}")
        self._counts.calls += 1

    async def _check_stalled(self, session_id: str) -> None:
        session = (await self._admin.get(f"/v1/sessions/{session_id}")).json()
        activity = session["activity"]
        is_stalled = (activity["state"], activity["reason"]) == ("stalled", "author_disabled")
        self._counts.check(holds=is_stalled, otherwise=f"{session_id}: {activity}")
        turns = (await self._admin.get(f"/v1/sessions/{session_id}/turns")).json()["data"]
        self._counts.check(holds=len(turns) == 1, otherwise=f"{session_id}: {len(turns)} turns started")

    async def _check_handed_over(self, session_id: str, successor: _Member) -> None:
        async def has_run() -> bool:
            return await self._read_outputs(session_id) == ["1", "2"]

        await self._wait(has_run, f"{session_id}: the queued message did not run once")
        usage = await self._admin.get("/v1/usage", params={"group_by[]": ["session", "key"]})
        users = {line["key"] for line in usage.json()["data"] if line["session"] == session_id}
        self._counts.check(holds=successor.id in users, otherwise=f"{session_id}: it ran in the name of {users}")
        self._counts.queued += 1

    async def _check_approval(self, session_id: str, successor: _Member) -> None:
        pending = (await successor.http.get("/v1/approvals", params={"session_id": session_id})).json()["data"]
        self._counts.check(holds=len(pending) == 1, otherwise=f"{session_id}: {len(pending)} approvals are pending")
        for approval in pending:
            await successor.client.send(
                session_id,
                {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": approval["id"], "result": "allow"},
            )

        async def has_run() -> bool:
            return await self._read_outputs(session_id) == ["1"]

        await self._wait(has_run, f"{session_id}: the approved call did not run once")
        self._counts.approvals += 1

    async def _has_event(self, session_id: str, kind: str) -> bool:
        return any(event["type"] == kind for event in await self._read_events(self._admin, session_id))

    async def _read_outputs(self, session_id: str) -> list[str]:
        found = await self._read_events(self._admin, session_id)
        results = [event for event in found if event["type"] == events.AGENT_TOOL_RESULT]
        return [str(result["content"][0]["text"]).strip() for result in results]

    async def _read_events(self, http: httpx2.AsyncClient, session_id: str) -> Sequence[dict[str, Any]]:
        response = await http.get(f"/v1/sessions/{session_id}/events", params={"limit": 1000})
        require(holds=response.status_code == httpx2.codes.OK, otherwise=f"{session_id}: {response.text}")
        found: list[dict[str, Any]] = response.json()["data"]
        return found

    async def _wait(self, condition: Callable[[], Awaitable[bool]], otherwise: str) -> None:
        self._counts.check(holds=await wait_until(condition, _TIMEOUT_SECONDS), otherwise=otherwise)
