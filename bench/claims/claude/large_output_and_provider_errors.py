"""Large tool outputs do not break a turn of Claude Code, and provider errors end it as documented."""

import time
from dataclasses import dataclass
from typing import Final

from bench.prove.figure import Figure, time_limit
from bench.support.clients import Client, Event, texts
from bench.support.cluster import open_cluster
from footplate.testing import (
    Replies,
    cut,
    overloaded,
    rate_limited,
    replies,
    reply,
    text,
    tool,
    unauthorized,
)

_RETRY_WAIT: Final = 0.2
_SETTINGS: Final = {"FOOTPLATE_RETRY_WAIT": str(_RETRY_WAIT), "FOOTPLATE_MAX_FAILURES": "2"}
_MAX_TURN_SECONDS: Final = 10.0
"""Seconds that a cold start and a turn may take on a busy machine, without the waits for a provider."""


@dataclass(frozen=True, slots=True)
class Case:
    script: Replies
    stop_reason: str
    """The `stop_reason` of the turn."""
    error: str | None = None
    """The last `session.error`, if the turn fails."""
    attempts: int = 1


def _script_printing(command: str) -> Replies:
    return replies([tool("Bash", {"command": command})], [text("Seen.")])


_CASES: Final = {
    "10 MB of output": Case(_script_printing("head -c 10000000 /dev/zero | tr '\\0' x | fold -w 99"), "end_turn"),
    "a line of 5 MB": Case(_script_printing("head -c 5000000 /dev/zero | tr '\\0' y"), "end_turn"),
    "a message of 2 MB": Case(replies([text("z" * 2_000_000, chunks=20)]), "end_turn"),
    "401": Case(replies(reply(unauthorized(), repeat=True)), "retries_exhausted", "model_request_failed_error"),
    "429 once": Case(replies(reply(text("Seen."), first_attempts=[[rate_limited(1)]])), "end_turn", attempts=2),
    "529 once": Case(replies(reply(text("Seen."), first_attempts=[[overloaded()]])), "end_turn", attempts=2),
    "cut once": Case(
        replies(reply(text("Seen."), first_attempts=[[text("Half of it", delay=0.05), cut()]])), "end_turn", attempts=2
    ),
    "429 always": Case(
        replies(reply(rate_limited(1), repeat=True)), "retries_exhausted", "model_rate_limited_error", attempts=3
    ),
    "529 always": Case(
        replies(reply(overloaded(), repeat=True)), "retries_exhausted", "model_overloaded_error", attempts=3
    ),
    "cut always": Case(
        replies(reply(text("Half of it", delay=0.05), cut(), repeat=True)),
        "retries_exhausted",
        "unknown_error",
        attempts=3,
    ),
}
_QUICK: Final = ("10 MB of output", "401", "529 once")
_ROUNDS: Final = 5


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    faults: list[str] = []
    turns = 0
    slowest: dict[str, float] = {}
    async with open_cluster(environment=_SETTINGS) as cluster, Client(cluster) as client:
        agent = await client.agent(extra_body={"harness": "claude"})
        limit = time_limit(_MAX_TURN_SECONDS, quick=quick)
        for name in _QUICK if quick else _CASES:
            case = _CASES[name]
            script = "case-" + "".join(letter for letter in name if letter.isalnum())
            await cluster.model.install(script, case.script)
            for _ in range(1 if quick else _ROUNDS):
                began = time.monotonic()
                events = await client.run_turn(await client.session(agent), f"Go. [[script:{script}]]")
                took = time.monotonic() - began
                slowest[name] = max(took, slowest.get(name, 0.0))
                turns += 1
                faults += [f"{name}: {fault}" for fault in _find_faults(case, events, took, limit)]
    longest = max(slowest.values())
    headline = f"{turns} turns of {len(slowest)} kinds ended as documented, the slowest after {longest:.1f} s"
    summary = (
        f"{turns} turns of {len(slowest)} kinds ({', '.join(slowest)}): each ended as documented, the slowest after "
        f"{longest:.1f} s"
    )
    if faults:
        headline, summary = f"{turns} turns of {len(slowest)} kinds: {len(faults)} faults", faults[0]
    for fault in faults:
        print(f"  FAULT {fault}", flush=True)
    return Figure(headline=headline, summary=summary, holds=not faults, details={"slowest": {**slowest}})


def _find_faults(case: Case, events: list[Event], took: float, limit: float) -> list[str]:
    found = []
    if (ends := events[-1]["stop_reason"]["type"]) != case.stop_reason:
        found.append(f"ended with {ends}")
    errors = [event["error"]["type"] for event in events if event["type"] == "session.error"]
    if case.error and (not errors or errors[-1] != case.error):
        found.append(f"its errors are {errors}")
    if not case.error and not texts(events):
        found.append("there is no text")
    running = sum(event["type"] == "session.status_running" for event in events)
    if running != case.attempts:
        found.append(f"{running} attempts, not {case.attempts}")
    waits = sum(max(_RETRY_WAIT * 2**number, 1.0) for number in range(case.attempts - 1))
    if took > limit * case.attempts + waits:
        found.append(f"took {took:.1f} s")
    return found
