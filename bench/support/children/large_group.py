"""Many children of one parent: commands and prompts, some fail or wait for approval, and a worker is killed halfway."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import require
from bench.support.children.site import PATIENCE, ChildSite, find_in_messages, max_concurrent
from footplate.client.steps import Step
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until
from footplate.testing import text, tool
from footplate.testing.model_scripts import Request
from footplate.testing.reply_steps import Step as ReplyStep

_SCRIPT: Final = "child"
_SECONDS: Final = 1.0
_UNKNOWN: Final = "The outcome of this call is unknown"
_FAILED: Final = "The command exited with code 3."


@dataclass(frozen=True, slots=True)
class _Child:
    number: int
    effects: Path

    @property
    def fails(self) -> bool:
        return self.number % 10 == 3

    @property
    def needs_approval(self) -> bool:
        return self.number % 20 in {6, 7}

    @property
    def is_prompt(self) -> bool:
        return self.number % 2 == 1 and not self.fails

    @property
    def has_background_process(self) -> bool:
        return self.number % 5 == 0

    @property
    def result(self) -> str:
        return f"result {self.number}"

    @property
    def command(self) -> str:
        commands = [
            *(["touch approved"] if self.needs_approval else []),
            f"echo ran >> {shlex.quote(str(self.effects / str(self.number)))}",
            *(["setsid sleep 3600 > /dev/null 2>&1 & true"] if self.has_background_process else []),
            f"sleep {_SECONDS:g}",
            f"echo {self.result}",
            *(["exit 3"] if self.fails else []),
        ]
        return "\n".join(commands)

    def definition(self) -> Mapping[str, Any]:
        work = {"prompt": f"You are child {self.number}. [[script:{_SCRIPT}]]"}
        return {"name": f"n{self.number}", **(work if self.is_prompt else {"shell": self.command})}


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeGroupFindings:
    total: int
    accounted_for: int
    unknown: int
    """Members with a call whose outcome is unknown after the kill."""
    approved: int
    waited_through_kill: int
    at_once: int
    history_events: int
    history_bytes: int
    log_positions: int
    log_bytes: int


def _reply_as_child(effects: Path, request: Request) -> Sequence[ReplyStep]:
    child = _Child(int(find_in_messages(request, r"You are child (\d+)")), effects)
    return [text(child.result)] if request.n else [tool("bash", {"command": child.command})]


class LargeGroup:
    def __init__(self, site: ChildSite, total: int, max_running: int) -> None:
        self._site = site
        self._max_running = max_running
        self._children = [_Child(number, site.effects) for number in range(total)]
        self._waited_through_kill = 0
        self._approved = 0

    async def run(self) -> LargeGroupFindings:
        site = self._site
        site.model.install(_SCRIPT, partial(_reply_as_child, site.effects))
        processes = site.cluster.alive()
        parent_id = await site.new_session()
        sessions = [child.definition() for child in self._children]
        (step,) = await site.add_steps(
            parent_id, {"kind": "parallel", "sessions": sessions, "max_running": self._max_running}
        )
        await self._wait_for_half(parent_id)
        self._waited_through_kill = len([one async for one in site.client.approvals.list()])
        await site.cluster.kill_worker(0)
        approving = asyncio.create_task(self._approve_all())
        try:
            ended = await site.wait_for(step)
        finally:
            approving.cancel()
        findings = await self._check(parent_id, ended)
        remaining = await site.find_new_processes(processes)
        site.check(holds=not remaining, otherwise=f"processes remain: {remaining}")
        await site.cluster.restart_worker(0)
        return findings

    async def _wait_for_half(self, parent_id: str) -> None:
        half = len(self._children) // 2

        async def has_half_ended() -> bool:
            await asyncio.sleep(0.1)
            return len([one for one in await self._site.list_descendants(parent_id) if one["ended_at"]]) >= half

        ended = await wait_until(has_half_ended, PATIENCE)
        require(holds=ended, otherwise=f"{half} children have not ended after {PATIENCE:.0f} s")

    async def _approve_all(self) -> None:
        while True:
            for approval in [one async for one in self._site.client.approvals.list()]:
                await self._site.client.approvals.allow(approval)
                self._approved += 1
            await asyncio.sleep(0.2)

    async def _check(self, parent_id: str, step: Step) -> LargeGroupFindings:
        site = self._site
        require(holds=step.result is not None, otherwise=f"the parallel step is {step.state} without a result")
        assert step.result is not None
        reported = step.result.sessions or []
        stored = {row["id"]: row for row in await site.list_descendants(parent_id)}
        unknown = await self._find_unknown([*stored])
        right = 0
        for child, member in zip(self._children, reported, strict=False):
            fault = _find_fault(child, member, is_unknown=member["session_id"] in unknown)
            row = stored.get(member["session_id"])
            if fault is None and (row is None or row["end_outcome"] != member["outcome"]):
                fault = "its session has another outcome"
            site.check(holds=fault is None, otherwise=f"child {child.number}: {fault}: {member}")
            right += fault is None
        site.check(
            holds=len({member["session_id"] for member in reported}) == len(stored) == len(self._children),
            otherwise=f"{len(self._children)} children, {len(stored)} sessions, {len(reported)} results",
        )
        spans = await self._load_spans([*stored])
        at_once = max_concurrent(spans)
        site.check(
            holds=len(spans) == len(stored) and at_once <= self._max_running,
            otherwise=f"{at_once} of {len(spans)} children ran at once, at most {self._max_running} may",
        )
        unclosed = await site.find_open_workflows([*stored])
        site.check(holds=not unclosed, otherwise=f"workflows of {len(unclosed)} ended children are open")
        history = await site.histories.wait_until_idle(parent_id)
        started = history[0].workflow_execution_started_event_attributes
        site.check(holds=not started.continued_execution_run_id, otherwise="the parent's workflow has several runs")
        log = await site.database.fetchrow(
            "select count(*) as positions, coalesce(sum(length(body::text)), 0) as bytes, "
            "count(*) filter (where type = $2) as results from events where session_id = $1",
            parent_id,
            events.USER_CUSTOM_TOOL_RESULT,
        )
        assert log is not None
        site.check(holds=log["results"] == 1, otherwise=f"the parent's log has {log['results']} results of the group")
        return LargeGroupFindings(
            total=len(self._children),
            accounted_for=right,
            unknown=len(unknown),
            approved=self._approved,
            waited_through_kill=self._waited_through_kill,
            at_once=at_once,
            history_events=len(history),
            history_bytes=sum(event.ByteSize() for event in history),
            log_positions=log["positions"],
            log_bytes=log["bytes"],
        )

    async def _find_unknown(self, session_ids: Sequence[str]) -> set[str]:
        rows = await self._site.database.fetch(
            "select distinct session_id from events where session_id = any($1) and type = $2 "
            "and strpos(body::text, $3) > 0",
            session_ids,
            events.AGENT_TOOL_RESULT,
            _UNKNOWN,
        )
        return {row["session_id"] for row in rows}

    async def _load_spans(self, session_ids: Sequence[str]) -> Sequence[tuple[float, float]]:
        """Returns when each child began and ended to run, by its log."""
        rows = await self._site.database.fetch(
            "select session_id, extract(epoch from min(created_at) filter (where type = $2))::float8 as began, "
            "extract(epoch from max(created_at) filter (where type = $3))::float8 as ended "
            "from events where session_id = any($1) group by session_id",
            session_ids,
            events.STATUS_RUNNING,
            events.STATUS_TERMINATED,
        )
        return [(row["began"], row["ended"]) for row in rows if row["began"] and row["ended"]]


def _find_fault(child: _Child, member: Mapping[str, Any], *, is_unknown: bool) -> str | None:
    """Returns what is wrong with the result of a child, or with what its command did."""
    file = child.effects / str(child.number)
    effects = len(file.read_text().splitlines()) if file.exists() else 0
    if effects > 1 or (effects == 0 and not is_unknown):
        return f"its command took effect {effects} times"
    if is_unknown and not child.is_prompt:
        expected, shown = "failed", _UNKNOWN in str(member["error"])
    elif child.fails:
        expected, shown = "failed", member["error"] == _FAILED
    else:
        expected, shown = "completed", str(member["text"]).strip() == child.result
    if member["name"] != f"n{child.number}" or member["outcome"] != expected or not shown:
        return f"its result is wrong, expected {expected}"
    return None
