"""Agents that start sessions without end. All their sessions run the same script, and refusals do not stop them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.prove.figure import require
from bench.support.children.site import PATIENCE, ChildSite, find_in_messages
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until
from footplate.testing import text, tool
from footplate.testing.model_scripts import Request
from footplate.testing.reply_steps import Step

DEEP: Final = "deep"
WIDE: Final = "wide"
MAX_DEPTH: Final = 3
_MAX_ITERATIONS: Final = 8
_REFUSALS: Final = {DEEP: "cannot start others", WIDE: "sessions that one session has started may exist"}


@dataclass(frozen=True, slots=True)
class EndlessFindings:
    started: int
    most_living: int
    deepest: int
    refused: int


def _reply_deep(request: Request) -> Sequence[Step]:
    """Starts one session and waits for it."""
    if request.n == 0:
        return [tool("spawn_sessions", {"sessions": [_child(DEEP)]})]
    if request.n == 1 and "Group ID" in str(request.body["messages"]):
        return [tool("wait_sessions", {"group_id": find_in_messages(request, r"sgrp_\w+")})]
    return [text("Stopped.")]


def _reply_wide(max_sessions: int, request: Request) -> Sequence[Step]:
    """Starts several sessions with every reply. The limit of the agent's iterations ends its turn."""
    count = max(max_sessions // 6, 1)
    return [tool("spawn_sessions", {"sessions": [_child(request.script)] * count, "max_running": count})]


async def run_endless_agent(site: ChildSite, script: str) -> EndlessFindings:
    """Runs an agent until its turn and all sessions below it have ended."""
    site.model.install(DEEP, _reply_deep)
    site.model.install(WIDE, partial(_reply_wide, site.max_sessions))
    processes = site.cluster.alive()
    session_id = await site.new_session(max_iterations=_MAX_ITERATIONS, spawn_sessions=True)
    await site.sdk.send_text(session_id, f"Go. [[script:{script}]]")
    most_living = 0

    async def has_ended() -> bool:
        nonlocal most_living
        await asyncio.sleep(0.05)
        living = sum(one["ended_at"] is None for one in await site.list_descendants(session_id))
        most_living = max(most_living, living)
        turns = await site.sdk.list_turns(session_id)
        return not living and bool(turns) and turns[0]["ended_at"] is not None

    ended = await wait_until(has_ended, PATIENCE)
    require(holds=ended, otherwise=f"sessions of an endless agent have not ended after {PATIENCE:.0f} s")
    found = await site.list_descendants(session_id)
    findings = EndlessFindings(
        started=len(found),
        most_living=most_living,
        deepest=max((row["depth"] for row in found), default=0),
        refused=await _count_refusals(site, [session_id, *(row["id"] for row in found)], _REFUSALS[script]),
    )
    site.check(
        holds=findings.most_living <= site.max_sessions and findings.deepest <= MAX_DEPTH and findings.refused > 0,
        otherwise=f"{script}: {findings}, at most {site.max_sessions} living and {MAX_DEPTH} levels",
    )
    remaining = await site.find_new_processes(processes)
    site.check(holds=not remaining, otherwise=f"processes of endless agents remain: {remaining}")
    return findings


async def _count_refusals(site: ChildSite, session_ids: Sequence[str], message: str) -> int:
    count: int = await site.database.fetchval(
        "select count(*) from events where session_id = any($1) and type = $2 and strpos(body::text, $3) > 0",
        session_ids,
        events.AGENT_TOOL_RESULT,
        message,
    )
    return count


def _child(script: str) -> dict[str, str]:
    return {"prompt": f"Go. [[script:{script}]]"}
