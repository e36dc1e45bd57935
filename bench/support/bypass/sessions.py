"""Makes the corpus's calls in sessions of a running server: by an agent, by a subagent, and in a fork.

Commands run in the arena's tree without a sandbox, so only the gate stops them. A message has several calls; calls
that need approval are denied by the next message. Forbidden effects are looked for after all calls have ended. A
command that uses `~` finds a different home here than in the arena, so it may be harmless and allowed.
"""

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from bench.prove.figure import require
from bench.support.bypass import corpus
from bench.support.bypass.arena import SECRET, Arena
from bench.support.bypass.corpus import Case
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from footplate.domain import events
from footplate.testing import replies, text, tool

HARNESSES: Final = ("native", "claude")
AGENT, SUBAGENT, FORK = "agent", "subagent", "fork"
_AT_ONCE: Final = 15
_BASH: Final = {"native": "bash", "claude": "Bash"}
_SETTINGS: Final = {
    "FOOTPLATE_ENVIRONMENT": "unsandboxed",
    "FOOTPLATE_NAMED_DIRECTORIES": "true",
    "FOOTPLATE_SUBAGENT_HOLD": "0",
}
_PATIENCE: Final = 120.0
_TRIES: Final = 3
_HELPER: Final = "helper"


@dataclass(slots=True)
class Found:
    said: Counter[str] = field(default_factory=Counter)
    """Decisions of the gate, by harness and caller."""
    calls: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@asynccontextmanager
async def opened() -> AsyncIterator["Sessions"]:
    with tempfile.TemporaryDirectory(prefix="footplate-arena-") as folder:
        async with open_cluster(environment=_SETTINGS) as cluster, Client(cluster) as client:
            yield Sessions(cluster, client, Arena(Path(folder)))


def batches(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """Yields cases of one group and one set of rules, as many as fit in a message."""
    for _, alike in itertools.groupby(cases, lambda case: (case.group, case.rules)):
        left = list(alike)
        while left:
            yield left[:_AT_ONCE]
            left = left[_AT_ONCE:]


class Sessions:
    def __init__(self, cluster: Cluster, client: Client, arena: Arena) -> None:
        self._cluster = cluster
        self._client = client
        self._arena = arena
        self._agents: dict[tuple[str, str], str] = {}
        self._numbers = itertools.count(1)
        self.found = Found()

    async def control(self, harness: str, who: str) -> None:
        """Checks that without rules the same call has an effect, so that the search below can find one."""
        free = Case("control", "free", "touch CANARY")
        effect, told = await self._message(harness, who, [free], {})
        require(holds=bool(effect), otherwise=f"{harness}, {who}: without rules {free.command!r} does nothing: {told}")

    async def attempt(self, harness: str, who: str, batch: Sequence[Case]) -> None:
        """Makes the calls of a batch and records forbidden effects.

        On a busy machine a worker may lose its turn, so that calls never reach the gate. They are made again, and the
        effects of all tries count.
        """
        name = f"{harness}, {who}, {batch[0].group}, {batch[0].rules}"
        for _ in range(_TRIES):
            effect, told = await self._message(harness, who, batch, _rules(batch[0].rules))
            if effect or not any(event["type"] == events.STATUS_RESCHEDULED for event in told):
                break
            print(f"  {name}: the worker was lost; trying again", flush=True)
        made = [event for event in told if event["type"] == events.AGENT_TOOL_USE and "command" in event["input"]]
        self.found.said.update(f"{harness} {who} {event.get('evaluated_permission')}" for event in made)
        self.found.calls[f"{harness} {who}"] += len(made)
        wanted = Counter(self._placed(case) for case in batch)
        if Counter(str(event["input"]["command"]) for event in made) != wanted:
            self._fault(f"{name}: {len(made)} of {len(batch)} calls reached the gate")
        if effect:
            allowed = [event["input"]["command"] for event in made if event.get("evaluated_permission") == "allow"]
            self._fault(f"{name}: {effect}, by one of {allowed}")

    async def _message(
        self, harness: str, who: str, batch: Sequence[Case], rules: dict[str, Any]
    ) -> tuple[str, list[Event]]:
        """Sends one batch, and returns its forbidden effect and all events."""
        self._arena.reset()
        script = f"batch-{next(self._numbers)}"
        calls = [tool(_BASH[harness], {"command": self._placed(case)}) for case in batch]
        await self._cluster.model.install(f"{script}-own", replies(calls, [text("Tried.")]))
        asked = {"description": "x", "prompt": f"Go. [[script:{script}-own]]", "subagent_type": _HELPER}
        await self._cluster.model.install(script, replies([tool("Agent", asked)], [text("Done.")]))
        session_id = await self._session(harness, who, rules)
        before = self._arena.state(batch[0].rules)
        await self._turn(session_id, f"Go. [[script:{script if who == SUBAGENT else f'{script}-own'}]]")
        effect = self._arena.changes(batch[0].rules, before)
        told = await self._told(session_id)
        if not effect and batch[0].rules == "paths" and any(SECRET in str(_shown(event)) for event in told):
            effect = "the secret was shown"
        return effect, told

    async def _session(self, harness: str, who: str, rules: dict[str, Any]) -> str:
        fields = {"context": {"directory": str(self._arena.tree)}, "permissions": rules}
        session_id = await self._client.session(await self._agent(harness, who), extra_body=fields)
        if who != FORK:
            return session_id
        await self._turn(session_id, "Hello.")
        path = f"/v1/sessions/{session_id}/fork"
        fork: Any = await self._client.sdk.post(path, cast_to=cast("Any", object), body={})
        return str(fork["id"])

    async def _agent(self, harness: str, who: str) -> str:
        if (harness, who) not in self._agents:
            body: dict[str, Any] = {"harness": harness}
            more: dict[str, Any] = {}
            if who == SUBAGENT:
                helper = await self._client.agent(name=_HELPER, extra_body=body)
                more = {"multiagent": {"type": "coordinator", "agents": [helper]}}
            self._agents[harness, who] = await self._client.agent(extra_body=body, **more)
        return self._agents[harness, who]

    async def _turn(self, session_id: str, said: str) -> None:
        """Runs one turn, and a second one if approval is requested: its message denies the pending calls."""
        for words in (said, "No. Go on."):
            told = await self._client.run_turn(session_id, words, patience=_PATIENCE)
            if told[-1]["stop_reason"]["type"] != "requires_action":
                return
        self._fault(f"{said}: a message did not deny the pending calls")

    async def _told(self, session_id: str) -> list[Event]:
        """Returns the events of all threads."""
        told = await self._client.events(session_id)
        threads: Any = await self._client.sdk.get(f"/v1/sessions/{session_id}/threads", cast_to=cast("Any", object))
        for thread in threads["data"]:
            if thread["parent_thread_id"] is not None:
                path = f"/v1/sessions/{session_id}/threads/{thread['id']}/events?limit=1000"
                page: Any = await self._client.sdk.get(path, cast_to=cast("Any", object))
                told += page["data"]
        return list({event["id"]: event for event in told}.values())

    def _placed(self, case: Case) -> str:
        return case.placed(self._arena.tree, self._arena.outside)

    def _fault(self, what: str) -> None:
        self.found.faults.append(what[:600])
        print(f"  {what[:600]}", flush=True)


def _rules(name: str) -> dict[str, Any]:
    written: dict[str, Any] = json.loads((corpus.FOLDER / "bypasses" / f"{name}.settings.json").read_text())
    rules: dict[str, Any] = written["permissions"]
    return {**rules, "allow": [*rules["allow"], f"Agent({_HELPER})"]}


def _shown(event: Event) -> object:
    return event.get("content") if event["type"] == events.AGENT_TOOL_RESULT else None
