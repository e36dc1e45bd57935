"""Hostile patterns, rules, globs, domains and cursors delay neither their own request nor other organisations.

First each request is sent alone, and the API's CPU time is compared with that of the same request with a plain text.
Then attackers send all of them, alternating between plain and hostile ones, while another organisation reads, runs
turns and requests `/livez`. The attackers' sessions run turns with the worst rules that the server accepts.
"""

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2

from bench.prove.figure import Figure, require, time_limit
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.guard import hostile_texts
from bench.support.guard.hostile_texts import Case, Request
from bench.support.speed.measurement import quantile
from footplate.domain.errors import FootplateError
from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.gate.evaluation import shell_command_decision
from footplate.gate.rules.layered_policy import Policy
from footplate.gate.rules.path_context import PathContext
from footplate.testing import replies, text, tool

_CASES: Final = 2_000
_MAX_EXCESS_MS: Final = 50.0
_MAX_RATIO: Final = 1.2
_MAX_LIVEZ_SECONDS: Final = 0.5
_ATTACKERS: Final = 2
_BLOCKS: Final = 6
_COMMAND: Final = "; ".join(f"cat {'a' * 30}{number}* **/{'*a' * 10}" for number in range(150))


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    rng = random.Random(seed := secrets.randbits(32))
    print(f"  seed {seed}", flush=True)
    count = 64 if quick else _CASES
    async with open_cluster() as cluster:
        key = await cluster.create_key("attackers")
        async with (
            Client(cluster) as victim,
            Client(cluster, key=key) as attacker,
            _open_client(cluster, cluster.key) as ours,
            _open_client(cluster, key) as theirs,
        ):
            ids = await _create_long_calls(cluster, attacker)
            cases = list(hostile_texts.cases(rng, count, ids))
            excess = await _measure_excess(cluster, theirs, cases)
            files = _measure_rule_files(cases)
            other_organisation = await _measure_other_organisation(victim, attacker, ours, theirs, cases, quick=quick)
    worst = max(excess + files)
    ratio, turns, livez_seconds = other_organisation
    limit = time_limit(_MAX_RATIO, quick=quick)
    headline = f"{count:,} hostile texts: at most {worst:.0f} ms of CPU each (limit {_MAX_EXCESS_MS:.0f})"
    if max(ratio, turns) > limit or livez_seconds > time_limit(_MAX_LIVEZ_SECONDS, quick=quick):
        headline = (
            f"other organisations {max(ratio, turns):.2f} times slower; `/livez` took {livez_seconds * 1000:.0f} ms"
        )
    return Figure(
        headline=headline,
        summary=f"{count} hostile texts: at most {worst:.0f} ms of CPU more than a plain one (limit "
        f"{_MAX_EXCESS_MS:.0f}); "
        f"another organisation's p95 {ratio:.2f} times for reads and {turns:.2f} for turns (limit {_MAX_RATIO}); "
        f"`/livez` responded within {livez_seconds * 1000:.0f} ms (limit {_MAX_LIVEZ_SECONDS * 1000:.0f})",
        holds=worst <= time_limit(_MAX_EXCESS_MS, quick=quick)
        and max(ratio, turns) <= limit
        and livez_seconds <= time_limit(_MAX_LIVEZ_SECONDS, quick=quick),
        details={
            "worst_ms": round(worst, 1),
            "reads": round(ratio, 3),
            "turns": round(turns, 3),
            "silent_s": round(livez_seconds, 3),
        },
    )


def _open_client(cluster: Cluster, key: str) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport()
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.AsyncClient(base_url=cluster.base_urls[0], headers=headers, transport=transport, timeout=60)


async def _create_long_calls(cluster: Cluster, attacker: Client) -> dict[str, str]:
    """Makes calls with long inputs, for replaying rules over them."""
    path = "/".join(["a" * 60] * 10)
    calls = [tool("read", {"file_path": path}), tool("bash", {"command": _COMMAND[:9_000]})]
    await cluster.model.install("long", replies(*([call] for call in calls), [text("Done.")]))
    await cluster.model.install("short", replies([tool("bash", {"command": "true"})], [text("Done.")]))
    agent, environment = await attacker.agent(), await attacker.environment()
    session = await attacker.session(agent, environment)
    await attacker.run_turn(session, "[[script:long]]")
    return {"agent": agent, "environment": environment, "session": session}


async def _measure_excess(cluster: Cluster, http: httpx2.AsyncClient, cases: Sequence[Case]) -> list[float]:
    """Returns the CPU milliseconds beyond the plain request's. A value above the limit is measured again."""
    pid = cluster.apis[0].pid
    require(holds=pid is not None, otherwise="the API does not run")
    found = []
    for case in cases:
        tries: list[float] = []
        while not tries or (tries[-1] > _MAX_EXCESS_MS and len(tries) < 3):
            plain = await _measure_request_cpu(int(pid or 0), http, case.plain)
            tries.append(await _measure_request_cpu(int(pid or 0), http, case.hostile) - plain)
        if min(tries) > _MAX_EXCESS_MS:
            print(f"  {min(tries):.0f} ms: {case.kind} {case.hostile[1]} {str(case.hostile[2])[:200]}", flush=True)
        found.append(min(tries))
    return found


async def _measure_request_cpu(pid: int, http: httpx2.AsyncClient, request: Request) -> float:
    began = _read_cpu_ms(pid)
    method, path, given = request
    response = await http.request(method, path, **given)
    require(holds=response.status_code < 500, otherwise=f"{method} {path} returned {response.status_code}")
    return _read_cpu_ms(pid) - began


def _read_cpu_ms(pid: int) -> float:
    """Returns the CPU milliseconds of all threads of a process, as the scheduler counts them."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except OSError:  # the thread ended
            continue
    return total / 1e6


def _measure_rule_files(cases: Sequence[Case]) -> list[float]:
    """Measures a file of rules and a long command, as `footplate policy explain` reads them, like the requests."""
    found = []
    for case in cases:
        if case.rule is None:
            continue
        tries: list[float] = []
        while not tries or (tries[-1] > _MAX_EXCESS_MS and len(tries) < 3):
            plain = _measure_rule_cpu("Read(src/**)")
            tries.append(_measure_rule_cpu(case.rule) - plain)
        found.append(min(tries))
    return found


def _measure_rule_cpu(rule: str) -> float:
    """Returns the CPU milliseconds of evaluating the long command with the rule."""
    began = time.thread_time()
    with contextlib.suppress(FootplateError):  # the rule is refused
        shell_command_decision.explain_command(
            Policy.parse({Layer.PROJECT: {PermissionOutcome.DENY: [rule]}}),
            _COMMAND[:9_000],
            PathContext(root="/work/tree"),
        )
    return (time.thread_time() - began) * 1000


async def _measure_other_organisation(
    victim: Client,
    attacker: Client,
    ours: httpx2.AsyncClient,
    theirs: httpx2.AsyncClient,
    cases: Sequence[Case],
    *,
    quick: bool,
) -> tuple[float, float, float]:
    """Returns how much slower reads and turns of another organisation are, and the longest response of `/livez`."""
    sessions = {
        "plain": await attacker.session(await attacker.agent(extra_body={"permissions": _make_plain_rules()})),
        "hostile": await attacker.session(await attacker.agent(extra_body={"permissions": _make_worst_rules()})),
    }
    own = await victim.session()
    await victim.run_turn(own, "[[script:short]]")
    reads: dict[str, list[float]] = {"plain": [], "hostile": []}
    turns: dict[str, list[float]] = {"plain": [], "hostile": []}
    livez_times: list[float] = []
    blocks = 2 if quick else _BLOCKS
    size = len(cases) // (blocks // 2)
    for block in range(blocks):
        kind = "hostile" if block % 2 else "plain"
        part = cases[block // 2 * size : (block // 2 + 1) * size]
        requests = [case.hostile if kind == "hostile" else case.plain for case in part]
        background = [
            asyncio.create_task(_send_requests(theirs, requests[number::_ATTACKERS])) for number in range(_ATTACKERS)
        ]
        background.append(asyncio.create_task(_run_turns_forever(attacker, sessions[kind])))
        watchers = [
            asyncio.create_task(_repeat(lambda: ours.get("/v1/agents"), reads[kind])),
            asyncio.create_task(_repeat(lambda: victim.run_turn(own, "[[script:short]]"), turns[kind])),
            asyncio.create_task(_repeat(lambda: ours.get("/livez"), livez_times if kind == "hostile" else [])),
        ]
        await asyncio.gather(*background[:_ATTACKERS])
        for task in (*background, *watchers):
            task.cancel()
        await asyncio.gather(*background, *watchers, return_exceptions=True)
        await attacker.interrupt(sessions[kind])
        await asyncio.sleep(1)
    p95 = {
        name: {kind: quantile(values, 0.95) for kind, values in found.items()}
        for name, found in (("reads", reads), ("turns", turns))
    }
    print(f"  {len(reads['hostile'])} reads, {len(turns['hostile'])} turns; p95 {p95}", flush=True)
    return (
        p95["reads"]["hostile"] / p95["reads"]["plain"],
        p95["turns"]["hostile"] / p95["turns"]["plain"],
        max(livez_times),
    )


async def _send_requests(http: httpx2.AsyncClient, requests: Sequence[Request]) -> None:
    for method, path, given in requests:
        await http.request(method, path, **given)


async def _run_turns_forever(attacker: Client, session: str) -> None:
    while True:
        await attacker.run_turn(session, "[[script:long]]", patience=300)


async def _repeat(action: Callable[[], Awaitable[Any]], seconds: list[float]) -> None:
    while True:
        began = time.monotonic()
        await action()
        seconds.append(time.monotonic() - began)
        await asyncio.sleep(0.02)


def _make_plain_rules() -> dict[str, Any]:
    return {"deny": [f"Read(secrets-{number}/**)" for number in range(900)], "ask": ["Bash(rm *)"]}


def _make_worst_rules() -> dict[str, Any]:
    hook = {"type": "command", "command": "true"}
    groups = [{"matcher": f"(.?.?.?.?.?){{10}}x{number}!", "hooks": [hook]} for number in range(50)]
    rules = [f"Read(**/{'*a' * 15}{number}*)" for number in range(900)]
    return {"deny": rules, "ask": [f"Bash(*a*{number}*b*)" for number in range(900)], "hooks": {"PreToolUse": groups}}
