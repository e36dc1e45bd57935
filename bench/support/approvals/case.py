"""Runs one session whose calls need approval, from its prompt to a check of each call."""

import random
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import anthropic
import asyncpg
import orjson

from bench.support.approvals import shapes
from bench.support.approvals.fire import Moment
from bench.support.approvals.shapes import Pipe, Shape
from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.mcp_server.process import McpProcess
from footplate.domain import events
from footplate.stack.leftovers import wait_until

PATIENCE: Final = 180.0
_TRIES: Final = 5
_LOG: Final = "select event_id as id, type, body from events where session_id = $1 and ref_seq is null order by seq"
_OPEN: Final = "select event_id from approvals where session_id = $1 and closed_at is null order by seq"
_STATUS: Final = "select status from session_heads where session_id = $1 and not wake"
_UNKNOWN: Final = "outcome of this call is unknown"


@dataclass(slots=True)
class Found:
    """Counts and faults of all cases so far."""

    faults: list[str] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)
    asks: Counter[str] = field(default_factory=Counter)
    """Approvals that were requested, by harness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The objects that all cases share."""

    cluster: Cluster
    client: Client
    database: "asyncpg.Pool[asyncpg.Record]"
    notes: McpProcess
    agents: dict[str, str]
    chance: random.Random
    found: Found


class Case:
    def __init__(self, scene: Scene, shape: Shape, moment: Moment, tag: str) -> None:
        self._scene = scene
        self._shape = shape
        self._moment = moment
        self._tag = tag
        self.session_id = ""
        self._words: dict[str, str] = {}
        """The decision that counts, by the id of the tool-use event."""

    async def ask(self) -> None:
        """Runs the session until a call needs approval.

        If the worker dies after the model's response and before its first approval request, the calls are reported to
        the model as never started. Then the prompt is sent again in a new session.
        """
        for number in range(_TRIES):
            tag = f"{self._tag}-{number}"
            for name, script in shapes.scripts(self._shape, tag).items():
                await self._scene.cluster.model.install(name, script)
            self.session_id = await self._scene.client.session(self._scene.agents[self._shape.harness])
            await self._scene.client.send_text(self.session_id, f"Go. [[script:{tag}]]")
            if not await wait_until(self._asked, PATIENCE):
                self._fault(f"no approval was requested: {await self._last()}")
                return
            if await self._open():
                return
            self._scene.found.count["lost before they asked"] += 1
            await self._judge({})
        self._fault(f"no approval was requested in {_TRIES} tries")

    async def answer(self) -> None:
        """Decides each pending approval in random order: sends the decision twice, and then the opposite one."""
        asked = await self._open()
        self._scene.chance.shuffle(asked)
        for event_id in asked:
            await self._answer(event_id)

    async def _answer(self, event_id: str) -> None:
        self._words[event_id] = self._scene.chance.choice(["allow", "allow", "deny"])
        await self._say(event_id, self._words[event_id])

    async def end(self, pipe: Pipe | None) -> None:
        """Waits until the session has ended its turn, and checks every call."""
        if not self._words:
            return
        if not await wait_until(self._ended, PATIENCE):
            self._fault(f"the session did not continue: {await self._last()}")
        await self._judge(self._words, pipe)

    async def pipe(self, exits: AsyncExitStack) -> Pipe | None:
        if self._shape.kind != "reads" or not await self._open():
            return None
        return await exits.enter_async_context(Pipe.laid(self._scene.cluster, self.session_id))

    async def _say(self, event_id: str, word: str) -> None:
        said = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": event_id, "result": word}
        try:
            first = await self._scene.client.send(self.session_id, said)
        except anthropic.ConflictError as error:
            # The process that held the approval for its subagent is dead, so the approval is closed.
            self._words[event_id] = "deny"
            self._scene.found.count["too late"] += 1
            if not (self._shape.held and self._moment.victim in {"worker", "harness", "temporal"}):
                self._fault(f"the first decision was refused: {error}")
            return
        if await self._scene.client.send(self.session_id, said) != first:
            self._fault(f"repeating the decision on {event_id} created another event")
        try:
            other = "deny" if word == "allow" else "allow"
            await self._scene.client.send(self.session_id, {**said, "result": other})
            self._fault(f"a second, different decision on {event_id} was accepted")
        except anthropic.ConflictError:
            self._scene.found.count["conflicts refused"] += 1

    async def _asked(self) -> bool:
        """Whether the session waits for approval, or has ended its turn without."""
        idle = await self._scene.database.fetchval(_STATUS, self.session_id) == "idle"
        if self._shape.held:
            return bool(await self._open()) or (idle and await self._reason() == "end_turn")
        return idle and await self._reason() in {"requires_action", "end_turn"}

    async def _ended(self) -> bool:
        """Whether the turn has ended. A turn that restarts may request approval again, so pending approvals are
        decided.
        """
        for event_id in await self._open():
            if event_id not in self._words:
                await self._answer(event_id)
        idle = await self._scene.database.fetchval(_STATUS, self.session_id) == "idle"
        return idle and await self._reason() == "end_turn"

    async def _open(self) -> list[str]:
        rows = await self._scene.database.fetch(_OPEN, self.session_id)
        return [row["event_id"] for row in rows]

    async def _log(self) -> list[dict[str, Any]]:
        rows = await self._scene.database.fetch(_LOG, self.session_id)
        return [{**orjson.loads(row["body"]), "id": row["id"], "type": row["type"]} for row in rows]

    async def _reason(self) -> str:
        told = [event for event in await self._log() if event["type"] == events.STATUS_IDLE]
        return str(told[-1]["stop_reason"]["type"]) if told else ""

    async def _last(self) -> str:
        return ", ".join(event["type"] for event in (await self._log())[-8:])

    async def _judge(self, words: dict[str, str], pipe: Pipe | None = None) -> None:
        told = await self._log()
        uses = {event["id"]: event for event in told if event.get("evaluated_permission") == "ask"}
        results = {
            str(event.get("tool_use_id") or event.get("mcp_tool_use_id")): event
            for event in told
            if event["type"] in events.TOOL_RESULTS
        }
        calls = [event for event in told if event["type"] in events.TOOL_USES]
        if uses.keys() != words.keys() or len([*results]) != len(calls):
            self._fault(f"{len(words)} decisions on {len(uses)} approvals, {len(calls)} calls, {len(results)} results")
        taken = pipe.taken if pipe is not None else 0
        for event_id, word in words.items():
            if event_id in uses:
                name, result = shapes.name_of(uses[event_id]), results.get(event_id, {})
                self._judge_call(name, word, self._ran(name, taken), result)
        asked = {shapes.name_of(use) for use in uses.values()}
        for name in {"a", "b", "c", self._tag} - asked:
            if count := self._ran(name, taken):
                self._fault(f"{name} ran {count} times without approval")

    def _ran(self, name: str, taken: int) -> int:
        return shapes.ran(self._scene.cluster, self._scene.notes, self.session_id, name, taken)

    def _judge_call(self, name: str, word: str, ran: int, result: dict[str, Any]) -> None:
        count = self._scene.found.count
        self._scene.found.asks[self._shape.harness] += 1
        count[word] += 1
        count[self._shape.kind] += 1
        cut = word == "allow" and (_UNKNOWN in str(result.get("content")) or not ran) and bool(result.get("is_error"))
        count["unknown"] += cut
        if word == "deny" and ran:
            self._fault(f"{name} was denied and ran")
        elif ran > 1:
            self._fault(f"{name} ran {ran} times")
        elif cut and not self._moment.cuts:
            self._fault(f"{name} has an unknown outcome, and no process that runs it died: {result.get('content')}")
        elif word == "allow" and not ran and not cut:
            self._fault(f"{name} was allowed and never ran: {result.get('content')}")

    def _fault(self, what: str) -> None:
        self._scene.found.faults.append(f"{self._shape.title}, {self._moment.title}: {what}")
        print(f"  {self._scene.found.faults[-1]}", flush=True)
