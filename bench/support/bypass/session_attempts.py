"""Makes the corpus's calls in sessions of a running server: by an agent, by a subagent, and in a fork.

Commands run in the arena's tree without a sandbox, so only the gate stops them. A message has several calls; calls
that need approval are denied by the next message. Forbidden effects are looked for after all calls have ended. A
command that uses `~` finds a different home here than in the arena, so it may be harmless and allowed.
"""

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from bench.prove.figure import require
from bench.support.bypass import corpus
from bench.support.bypass.attack_tree import SECRET, AttackTree
from bench.support.bypass.corpus import BypassCase
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from footplate.domain.sessions import events
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
class BypassFindings:
    decisions: Counter[str] = field(default_factory=Counter)
    """Decisions of the gate, by harness and caller."""
    calls: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@asynccontextmanager
async def open_sessions() -> AsyncIterator["BypassSessions"]:
    with tempfile.TemporaryDirectory(prefix="footplate-arena-") as folder:
        async with open_cluster(environment=_SETTINGS) as cluster, Client(cluster) as client:
            yield BypassSessions(cluster, client, AttackTree(Path(folder)))


def make_batches(cases: Sequence[BypassCase]) -> Iterator[list[BypassCase]]:
    """Yields cases of one group and one set of rules, as many as fit in a message."""
    for _, alike in itertools.groupby(cases, lambda case: (case.group, case.rules)):
        remaining = list(alike)
        while remaining:
            yield remaining[:_AT_ONCE]
            remaining = remaining[_AT_ONCE:]


class BypassSessions:
    def __init__(self, cluster: Cluster, client: Client, tree: AttackTree) -> None:
        self._cluster = cluster
        self._client = client
        self.tree = tree
        self._agents: dict[tuple[str, str], str] = {}
        self._numbers = itertools.count(1)
        self.found = BypassFindings()

    async def check_control(self, harness: str, caller: str) -> None:
        """Checks that without rules the same call has an effect, so that the search below can find one."""
        free = BypassCase("control", "free", "touch CANARY")
        effect, log = await self.send_batch(harness, caller, [free], {})
        require(
            holds=bool(effect), otherwise=f"{harness}, {caller}: without rules {free.command!r} does nothing: {log}"
        )

    async def attempt_batch(self, harness: str, caller: str, batch: Sequence[BypassCase]) -> None:
        """Makes the calls of a batch and records forbidden effects.

        On a busy machine a worker may lose its turn, so that calls never reach the gate. They are made again, and the
        effects of all tries count.
        """
        name = f"{harness}, {caller}, {batch[0].group}, {batch[0].rules}"
        for _ in range(_TRIES):
            effect, log = await self.send_batch(harness, caller, batch, _rules(batch[0].rules))
            if effect or not any(event["type"] == events.STATUS_RESCHEDULED for event in log):
                break
            print(f"  {name}: the worker was lost; trying again", flush=True)
        made = [event for event in log if event["type"] == events.AGENT_TOOL_USE and "command" in event["input"]]
        self.found.decisions.update(f"{harness} {caller} {event.get('evaluated_permission')}" for event in made)
        self.found.calls[f"{harness} {caller}"] += len(made)
        wanted = Counter(self.fill_placeholders(case) for case in batch)
        if Counter(str(event["input"]["command"]) for event in made) != wanted:
            self._record_fault(f"{name}: {len(made)} of {len(batch)} calls reached the gate")
        if effect:
            allowed = [event["input"]["command"] for event in made if event.get("evaluated_permission") == "allow"]
            self._record_fault(f"{name}: {effect}, by one of {allowed}")

    async def send_batch(
        self, harness: str, caller: str, batch: Sequence[BypassCase], rules: Mapping[str, Any]
    ) -> tuple[str, list[Event]]:
        """Sends one batch, and returns its forbidden effect and all events."""
        self.tree.reset()
        script = f"batch-{next(self._numbers)}"
        calls = [tool(_BASH[harness], {"command": self.fill_placeholders(case)}) for case in batch]
        await self._cluster.model.install(f"{script}-own", replies(calls, [text("Tried.")]))
        asked = {"description": "x", "prompt": f"Go. [[script:{script}-own]]", "subagent_type": _HELPER}
        await self._cluster.model.install(script, replies([tool("Agent", asked)], [text("Done.")]))
        session_id = await self.create_session(harness, caller, rules)
        before = self.tree.read_state(batch[0].rules)
        await self.run_turn(session_id, f"Go. [[script:{script if caller == SUBAGENT else f'{script}-own'}]]")
        return await self.find_effect(session_id, batch[0].rules, before)

    async def find_effect(self, session_id: str, rules: str, before: Mapping[str, object]) -> tuple[str, list[Event]]:
        """Returns the forbidden effect of a session's calls, and all its events."""
        effect = self.tree.describe_changes(rules, before)
        log = await self._list_all_events(session_id)
        if not effect and rules == "paths" and any(SECRET in str(_result_content(event)) for event in log):
            effect = "the secret was shown"
        return effect, log

    async def create_session(self, harness: str, caller: str, rules: Mapping[str, Any]) -> str:
        fields = {"context": {"directory": str(self.tree.tree)}, "permissions": rules}
        session_id = await self._client.session(await self._find_agent(harness, caller), extra_body=fields)
        if caller != FORK:
            return session_id
        await self.run_turn(session_id, "Hello.")
        path = f"/v1/sessions/{session_id}/fork"
        fork: Any = await self._client.sdk.post(path, cast_to=cast("Any", object), body={})
        return str(fork["id"])

    async def _find_agent(self, harness: str, caller: str) -> str:
        if (harness, caller) not in self._agents:
            body: dict[str, Any] = {"harness": harness}
            more: dict[str, Any] = {}
            if caller == SUBAGENT:
                helper = await self._client.agent(name=_HELPER, extra_body=body)
                more = {"multiagent": {"type": "coordinator", "agents": [helper]}}
            self._agents[harness, caller] = await self._client.agent(extra_body=body, **more)
        return self._agents[harness, caller]

    async def run_turn(self, session_id: str, prompt: str) -> None:
        """Runs one turn, and a second one if approval is requested: its message denies the pending calls."""
        for message in (prompt, "No. Go on."):
            log = await self._client.run_turn(session_id, message, patience=_PATIENCE)
            if log[-1]["stop_reason"]["type"] != "requires_action":
                return
        self._record_fault(f"{prompt}: a message did not deny the pending calls")

    async def _list_all_events(self, session_id: str) -> list[Event]:
        """Returns the events of all threads."""
        log = await self._client.events(session_id)
        threads: Any = await self._client.sdk.get(f"/v1/sessions/{session_id}/threads", cast_to=cast("Any", object))
        for thread in threads["data"]:
            if thread["parent_thread_id"] is not None:
                path = f"/v1/sessions/{session_id}/threads/{thread['id']}/events?limit=1000"
                page: Any = await self._client.sdk.get(path, cast_to=cast("Any", object))
                log += page["data"]
        return list({event["id"]: event for event in log}.values())

    def fill_placeholders(self, case: BypassCase) -> str:
        return case.fill_placeholders(self.tree.tree, self.tree.outside)

    def _record_fault(self, problem: str) -> None:
        self.found.faults.append(problem[:600])
        print(f"  {problem[:600]}", flush=True)


def _rules(name: str) -> dict[str, Any]:
    written: dict[str, Any] = json.loads((corpus.FOLDER / "bypasses" / f"{name}.settings.json").read_text())
    rules: Mapping[str, Any] = written["permissions"]
    return {**rules, "allow": [*rules["allow"], f"Agent({_HELPER})"]}


def _result_content(event: Event) -> object:
    return event.get("content") if event["type"] == events.AGENT_TOOL_RESULT else None
