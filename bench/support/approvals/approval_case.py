"""Runs one session whose calls need approval, from its prompt to a check of each call."""

import random
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import anthropic
import asyncpg
import orjson

from bench.support.approvals import call_scenarios
from bench.support.approvals.call_scenarios import CallScenario, ReadCountingPipe
from bench.support.approvals.process_kills import KillPoint
from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.mcp_server.server_process import McpProcess
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until

PATIENCE: Final = 180.0
_TRIES: Final = 5
_LOG: Final = "select event_id as id, type, body from events where session_id = $1 and ref_seq is null order by seq"
_OPEN: Final = "select event_id from approvals where session_id = $1 and closed_at is null order by seq"
_STATUS: Final = "select status from session_heads where session_id = $1 and not wake"
_UNKNOWN: Final = "outcome of this call is unknown"


@dataclass(slots=True)
class ApprovalFindings:
    """Counts and faults of all cases so far."""

    faults: list[str] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)
    approvals: Counter[str] = field(default_factory=Counter)
    """Approvals that were requested, by harness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseContext:
    """The objects that all cases share."""

    cluster: Cluster
    client: Client
    database: "asyncpg.Pool[asyncpg.Record]"
    notes: McpProcess | None = None
    agents: dict[str, str]
    chance: random.Random
    found: ApprovalFindings


class ApprovalCase:
    def __init__(self, context: CaseContext, scenario: CallScenario, kill: KillPoint, tag: str) -> None:
        self._context = context
        self._scenario = scenario
        self._kill = kill
        self._tag = tag
        self.session_id = self.script = ""
        self._decisions: dict[str, str] = {}
        """The decision that counts, by the id of the tool-use event."""

    def use_context(self, context: CaseContext) -> None:
        """Replaces the shared objects, after a restart of the database."""
        self._context = context

    async def request_approval(self) -> None:
        """Runs the session until a call needs approval.

        If the worker dies after the model's response and before its first approval request, the calls are reported to
        the model as never started. Then the prompt is sent again in a new session.
        """
        for number in range(_TRIES):
            tag = self.script = f"{self._tag}-{number}"
            for name, script in call_scenarios.build_scripts(self._scenario, tag).items():
                await self._context.cluster.model.install(name, script)
            self.session_id = await self._context.client.session(self._context.agents[self._scenario.harness])
            await self._context.client.send_text(self.session_id, f"Go. [[script:{tag}]]")
            if not await wait_until(self._waits_or_ended, PATIENCE):
                self._record_fault(f"no approval was requested: {await self._describe_last_events()}")
                return
            if await self._pending_approvals():
                return
            self._context.found.count["lost before they asked"] += 1
            await self._check_calls({})
        self._record_fault(f"no approval was requested in {_TRIES} tries")

    async def send_decisions(self) -> None:
        """Decides each pending approval in random order: sends the decision twice, and then the opposite one."""
        asked = await self._pending_approvals()
        self._context.chance.shuffle(asked)
        for event_id in asked:
            await self._decide(event_id)

    async def _decide(self, event_id: str) -> None:
        self._decisions[event_id] = self._context.chance.choice(["allow", "allow", "deny"])
        await self._send_decision(event_id, self._decisions[event_id])

    async def wait_and_check(self, pipe: ReadCountingPipe | None) -> None:
        """Waits until the session has ended its turn, and checks every call."""
        if not self._decisions:
            return
        if not await wait_until(self._has_ended, PATIENCE):
            self._record_fault(f"the session did not continue: {await self._describe_last_events()}")
        await self._check_calls(self._decisions, pipe)

    async def open_pipe(self, exits: AsyncExitStack) -> ReadCountingPipe | None:
        if self._scenario.kind != "reads" or not await self._pending_approvals():
            return None
        return await exits.enter_async_context(ReadCountingPipe.create(self._context.cluster, self.session_id))

    async def _send_decision(self, event_id: str, decision: str) -> None:
        event = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": event_id, "result": decision}
        try:
            first = await self._context.client.send(self.session_id, event)
        except anthropic.ConflictError as error:
            # The process that held the approval for its subagent is dead, so the approval is closed.
            self._decisions[event_id] = "deny"
            self._context.found.count["too late"] += 1
            if not (self._scenario.is_held and self._kill.victim in {"worker", "harness", "temporal"}):
                self._record_fault(f"the first decision was refused: {error}")
            return
        if await self._context.client.send(self.session_id, event) != first:
            self._record_fault(f"repeating the decision on {event_id} created another event")
        try:
            other = "deny" if decision == "allow" else "allow"
            await self._context.client.send(self.session_id, {**event, "result": other})
            self._record_fault(f"a second, different decision on {event_id} was accepted")
        except anthropic.ConflictError:
            self._context.found.count["conflicts refused"] += 1

    async def _waits_or_ended(self) -> bool:
        """Whether the session waits for approval, or has ended its turn without."""
        idle = await self._context.database.fetchval(_STATUS, self.session_id) == "idle"
        if self._scenario.is_held:
            return bool(await self._pending_approvals()) or (idle and await self._read_stop_reason() == "end_turn")
        return idle and await self._read_stop_reason() in {"requires_action", "end_turn"}

    async def _has_ended(self) -> bool:
        """Whether the turn has ended. A turn that restarts may request approval again, so pending approvals are
        decided.
        """
        for event_id in await self._pending_approvals():
            if event_id not in self._decisions:
                await self._decide(event_id)
        idle = await self._context.database.fetchval(_STATUS, self.session_id) == "idle"
        return idle and await self._read_stop_reason() == "end_turn"

    async def _pending_approvals(self) -> list[str]:
        rows = await self._context.database.fetch(_OPEN, self.session_id)
        return [row["event_id"] for row in rows]

    async def _read_log(self) -> list[dict[str, Any]]:
        rows = await self._context.database.fetch(_LOG, self.session_id)
        return [{**orjson.loads(row["body"]), "id": row["id"], "type": row["type"]} for row in rows]

    async def _read_stop_reason(self) -> str:
        idle_events = [event for event in await self._read_log() if event["type"] == events.STATUS_IDLE]
        return str(idle_events[-1]["stop_reason"]["type"]) if idle_events else ""

    async def _describe_last_events(self) -> str:
        types: list[str] = [event["type"] for event in (await self._read_log())[-8:]]
        return ", ".join(types)

    async def _check_calls(self, decisions: dict[str, str], pipe: ReadCountingPipe | None = None) -> None:
        log = await self._read_log()
        uses = {event["id"]: event for event in log if event.get("evaluated_permission") == "ask"}
        results = {
            str(event.get("tool_use_id") or event.get("mcp_tool_use_id")): event
            for event in log
            if event["type"] in events.TOOL_RESULTS
        }
        calls = [event for event in log if event["type"] in events.TOOL_USES]
        if uses.keys() != decisions.keys() or len([*results]) != len(calls):
            self._record_fault(
                f"{len(decisions)} decisions on {len(uses)} approvals, {len(calls)} calls, {len(results)} results"
            )
        taken = pipe.reads if pipe is not None else 0
        for event_id, decision in decisions.items():
            if event_id in uses:
                name, result = call_scenarios.effect_name(uses[event_id]), results.get(event_id, {})
                self._check_call(name, decision, self._count_runs(name, taken), result)
        asked = {call_scenarios.effect_name(use) for use in uses.values()}
        for name in {"a", "b", "c", self._tag} - asked:
            if count := self._count_runs(name, taken):
                self._record_fault(f"{name} ran {count} times without approval")

    def _count_runs(self, name: str, taken: int) -> int:
        assert self._context.notes is not None
        return call_scenarios.count_effects(self._context.cluster, self._context.notes, self.session_id, name, taken)

    def _check_call(self, name: str, decision: str, ran: int, result: dict[str, Any]) -> None:
        count = self._context.found.count
        self._context.found.approvals[self._scenario.harness] += 1
        count[decision] += 1
        count[self._scenario.kind] += 1
        cut = (
            decision == "allow" and (_UNKNOWN in str(result.get("content")) or not ran) and bool(result.get("is_error"))
        )
        count["unknown"] += cut
        if decision == "deny" and ran:
            self._record_fault(f"{name} was denied and ran")
        elif ran > 1:
            self._record_fault(f"{name} ran {ran} times")
        elif cut and not self._kill.interrupts_calls:
            self._record_fault(
                f"{name} has an unknown outcome, and no process that runs it died: {result.get('content')}"
            )
        elif decision == "allow" and not ran and not cut:
            self._record_fault(f"{name} was allowed and never ran: {result.get('content')}")

    def _record_fault(self, problem: str) -> None:
        self._context.found.faults.append(f"{self._scenario.title}, {self._kill.title}: {problem}")
        print(f"  {self._context.found.faults[-1]}", flush=True)
