"""Many children of one session are all accounted for when a worker is killed; endless agents stop at their limit.

Three parts. One parent starts many children, some at a time, on two workers. Some fail, some wait for approval, some
start background processes, and a worker is killed when half of them have ended. A command that ran at that moment has
an unknown outcome and is not repeated. Then several children solve the same task, and the parent continues with the
files of the one whose check passes. At last, agents start sessions without end.
"""

import random
import secrets
from dataclasses import asdict
from typing import Final

from bench.prove.figure import Figure
from bench.support.children.best_of_several import count_right_choices
from bench.support.children.endless_agents import DEEP, WIDE, EndlessFindings, run_endless_agent
from bench.support.children.large_group import LargeGroup, LargeGroupFindings
from bench.support.children.site import ChildSite, open_site

_CHILDREN, _CHILDREN_QUICK = 200, 12
_MAX_RUNNING, _MAX_RUNNING_QUICK = 20, 4
_ROUNDS, _ROUNDS_QUICK = 20, 2
_CANDIDATES, _CANDIDATES_QUICK = 5, 3
_MAX_HISTORY_EVENTS: Final = 60
_MAX_HISTORY_BYTES: Final = 50_000
_MAX_LOG_BYTES: Final = 250_000
"""Of the parent, whatever the number of children."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    total, max_running = (_CHILDREN_QUICK, _MAX_RUNNING_QUICK) if quick else (_CHILDREN, _MAX_RUNNING)
    rounds, candidates = (_ROUNDS_QUICK, _CANDIDATES_QUICK) if quick else (_ROUNDS, _CANDIDATES)
    async with open_site(max_sessions=total) as site:
        group = await LargeGroup(site, total, max_running).run()
        print(f"  {group}", flush=True)
        right = await count_right_choices(site, random.Random(seed), rounds, candidates)
        print(f"  best of {candidates}: {right} of {rounds}", flush=True)
        endless = {script: await run_endless_agent(site, script) for script in (DEEP, WIDE)}
        print(f"  {endless}", flush=True)
    _check_size(site, group)
    return _figure(site, group, f"{right} of {rounds} times", candidates, endless)


def _check_size(site: ChildSite, group: LargeGroupFindings) -> None:
    for name, size, limit in (
        ("events in its history", group.history_events, _MAX_HISTORY_EVENTS),
        ("bytes in its history", group.history_bytes, _MAX_HISTORY_BYTES),
        ("bytes in its log", group.log_bytes, _MAX_LOG_BYTES),
    ):
        site.check(holds=size <= limit, otherwise=f"the parent has {size:,} {name}, at most {limit:,} allowed")


def _figure(
    site: ChildSite, group: LargeGroupFindings, right: str, candidates: int, endless: dict[str, EndlessFindings]
) -> Figure:
    wide = endless[WIDE]
    summary = (
        f"{group.total} children of one parent, at most {group.at_once} at once, on two workers, one killed halfway: "
        f"{group.accounted_for} accounted for with the right result, {group.unknown} of them with a call of unknown "
        f"outcome that was not repeated; {group.approved} approved, {group.waited_through_kill} of which waited when "
        f"the worker was killed; no process remained. The parent has {group.history_events} events and "
        f"{group.history_bytes:,} bytes in its workflow history, {group.log_positions} positions and "
        f"{group.log_bytes:,} bytes in its log. Best of {candidates}: the one whose check passes was chosen {right}. "
        f"Agents that start sessions without end: at most {wide.most_living} living of {site.max_sessions} allowed "
        f"({wide.started} started, {wide.refused} calls refused), and {endless[DEEP].deepest} levels."
    )
    headline = f"{group.accounted_for} of {group.total} children accounted for, {group.unknown} unknown outcomes"
    if site.faults:
        headline = f"{group.total} children: {len(site.faults)} faults"
        summary = f"{len(site.faults)} faults, the first: {site.faults[0]}"
    return Figure(
        headline=headline,
        summary=summary,
        holds=not site.faults,
        details={
            "faults": [*site.faults],
            "group": {**asdict(group)},
            "best": right,
            "endless": {script: {**asdict(found)} for script, found in endless.items()},
        },
    )
