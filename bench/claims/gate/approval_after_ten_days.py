"""An approval can be decided after ten days: an allowed call then runs exactly once, a denied one never.

Sessions of both harnesses park. Every process is stopped, including the databases and Temporal; all timestamps in the
database are moved back by ten days; the processes start again, with retention that archives, releases and deletes
inactive sessions. Once retention has deleted a session that waits for nothing, the approvals are decided. Approvals
with an expiry have been denied by then.
"""

import itertools
import random
import secrets
from typing import Any, Final

import anthropic
import httpx2

from bench.prove.figure import Figure, require
from bench.support.approvals.ten_days import pass_ten_days
from bench.support.clients import TOOLSET, Client, raw_client
from bench.support.cluster import Cluster, open_cluster
from bench.support.crash import interrupted_turn
from footplate.domain.json import Json
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

_SETTINGS: Final = {
    "FOOTPLATE_SWEEP_INTERVAL": "1",
    "FOOTPLATE_RETENTION": "2d",
    "FOOTPLATE_RETENTION_TREES": "2d",
    "FOOTPLATE_RETENTION_DELETE": "5d",
    "FOOTPLATE_KEPT_SESSIONS": "0",
    "FOOTPLATE_SLOTS": "0",
    "FOOTPLATE_LINGER": "1",
}
_HARNESSES: Final = {"native": "bash", "claude": "Bash"}
_EXPIRY_SECONDS: Final = 5 * 86_400
_TIMEOUT_SECONDS: Final = 180.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    rounds = 1 if quick else 10
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    async with (
        open_cluster(environment=_SETTINGS) as cluster,
        Client(cluster, max_retries=40) as client,
        raw_client(cluster) as http,
    ):
        return await _Trial(cluster, client, http, random.Random(seed)).run(rounds)


class _Trial:
    def __init__(self, cluster: Cluster, client: Client, http: httpx2.AsyncClient, rng: random.Random) -> None:
        self._cluster = cluster
        self._client = client
        self._http = http
        self._rng = rng
        self._faults: list[str] = []

    async def run(self, rounds: int) -> Figure:
        agents = await self._create_agents()
        done = await self._client.session(agents["native"])
        await self._client.run_turn(done, "Go. [[script:talks]]", patience=_TIMEOUT_SECONDS)
        parked = [
            await self._park(agents[harness], harness, number)
            for _, harness, number in itertools.product(range(rounds), _HARNESSES, (1, 3))
        ]
        expiry_policy = {"approvals": {"expires_after_seconds": _EXPIRY_SECONDS}}
        (await self._http.post("/v1/policies", json=expiry_policy)).raise_for_status()
        ended = [await self._park(agents[harness], harness, 1) for harness in _HARNESSES]
        await pass_ten_days(self._cluster)
        await self._wait_for_retention(done)
        for session_id, _ in ended:
            await self._wait_until_idle(session_id)
            self._check_effects(session_id, {"a": "deny"})
        decisions_by_session = [await self._decide(session_id, asked) for session_id, asked in parked]
        decisions = [decision for each in decisions_by_session for decision in each.values()]
        headline = (
            f"{len(decisions)} approvals decided ten days later: {decisions.count('allow')} ran "
            f"once, {decisions.count('deny')} never"
        )
        summary = (
            f"{len(parked)} sessions (`native` and `claude`) with {len(decisions)} approvals, ten days and "
            f"a restart of "
            f"every process later: {decisions.count('allow')} allowed calls ran once each, "
            f"{decisions.count('deny')} denied "
            f"never; retention deleted a session that waited for nothing, but none of these; {len(ended)} approvals "
            "expired and were denied, and their sessions continued"
        )
        if self._faults:
            headline = f"{len(decisions)} approvals decided ten days later: {len(self._faults)} faults"
            summary = f"{len(self._faults)} faults, the first: {self._faults[0]}"
        each = len(parked) // len(_HARNESSES)
        details: dict[str, Json] = {"faults": [*self._faults], "harnesses": dict.fromkeys(_HARNESSES, each)}
        return Figure(headline=headline, summary=summary, holds=not self._faults, details=details)

    async def _create_agents(self) -> dict[str, str]:
        await self._cluster.model.install("talks", replies([text("Well.")]))
        made = {}
        for harness, name in _HARNESSES.items():
            for number in (1, 3):
                calls = [tool(name, {"command": f"echo {letter} >> lines"}) for letter in "abc"[:number]]
                await self._cluster.model.install(f"{harness}-{number}", replies(calls, [text("Done.")]))
            asking = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
            made[harness] = await self._client.agent(tools=[asking], extra_body={"harness": harness})
        return made

    async def _park(self, agent: str, harness: str, number: int) -> tuple[str, list[str]]:
        session_id = await self._client.session(agent)
        received = await self._client.run_turn(
            session_id, f"Go. [[script:{harness}-{number}]]", patience=_TIMEOUT_SECONDS
        )
        reason = received[-1]["stop_reason"]
        require(holds=len(reason.get("event_ids") or []) == number, otherwise=f"{harness}: it waits for {reason}")
        return session_id, reason["event_ids"]

    async def _wait_for_retention(self, done: str) -> None:
        async def deleted() -> bool:
            return (await self._http.get(f"/v1/sessions/{done}")).status_code == httpx2.codes.NOT_FOUND

        require(holds=await wait_until(deleted, _TIMEOUT_SECONDS), otherwise="retention deleted nothing")

    async def _decide(self, session_id: str, call_ids: list[str]) -> dict[str, str]:
        listed = (await self._http.get("/v1/approvals", params={"session_id": session_id})).json()["data"]
        if {one["id"] for one in listed} != {*call_ids}:
            self._faults.append(f"{session_id} waits for {listed}, not for {call_ids}")
        decisions = {letter: self._rng.choice(["allow", "deny"]) for letter in "abc"[: len(call_ids)]}
        for event_id, decision in zip(call_ids, decisions.values(), strict=True):
            confirmation = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": event_id, "result": decision}
            await self._client.send(session_id, confirmation)
            await self._client.send(session_id, confirmation)
            try:
                await self._client.send(
                    session_id, {**confirmation, "result": "deny" if decision == "allow" else "allow"}
                )
                self._faults.append(f"{session_id}: a second, different decision was accepted")
            except anthropic.ConflictError:
                pass
        await self._wait_until_idle(session_id)
        self._check_effects(session_id, decisions)
        return decisions

    async def _wait_until_idle(self, session_id: str) -> None:
        last: list[Any] = []

        async def ended() -> bool:
            idle_events = await self._client.events(session_id, **{"types[]": events.STATUS_IDLE})
            last[:] = idle_events[-1:]
            return bool(last) and last[0]["stop_reason"]["type"] == "end_turn"

        if not await wait_until(ended, _TIMEOUT_SECONDS):
            self._faults.append(f"{session_id} did not continue: {last}")

    def _check_effects(self, session_id: str, decisions: dict[str, str]) -> None:
        ran = sorted(interrupted_turn.read_lines(self._cluster, session_id))
        wanted = [letter for letter, decision in decisions.items() if decision == "allow"]
        if ran != wanted:
            self._faults.append(f"{session_id}: the decisions are {decisions}, but these ran: {ran}")
