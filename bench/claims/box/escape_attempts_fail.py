"""An agent that tries everything gets nowhere: no attempt of the escape suite succeeds, and it slows nobody much.

Each attempt is made for real in an environment of its own and judged from outside, by what the host sees. The same
attempt must succeed where there is no boundary; one that could not succeed anywhere would prove nothing.
"""

import asyncio
import json
import os
import shutil
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

from bench.prove.figure import Figure
from bench.support import backends as engines
from bench.support.escape import backends, neighbour, suite
from bench.support.escape.attempt import CATEGORIES
from bench.support.escape.suite import Outcome

_MOST_SLOWER: Final = 1.25
_SANE: Final = 3.0
_FEWEST: Final = 60


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    outcomes = await _attempts(quick=quick)
    measured = [backends.BOUNDARIES[name] for name in engines.present() if name in backends.BOUNDARIES]
    slow = [await _slowdowns(opened, rounds=2 if quick else 25) for opened in measured[: 1 if quick else None]]
    escaped, unproven = suite.escapes(outcomes), suite.unproven(outcomes)
    tried = Counter(outcome.backend for outcome in outcomes)
    boundaries = {name: number for name, number in tried.items() if name != backends.CONTROL}
    missing = set(CATEGORIES) - {attempt.category for attempt in suite.ATTEMPTS}
    absent = sorted(set(backends.BOUNDARIES) - set(engines.present()))
    worst = max(slowdown.ratio for _, found in slow for slowdown in found)
    ratios = "; ".join(
        f"in {name} " + ", ".join(f"{slowdown.kind} {slowdown.ratio:.2f} ({slowdown.alone:.2f})" for slowdown in found)
        for name, found in slow
    )
    loop = statistics.median(slowdown.loop for _, found in slow for slowdown in found)
    controls = tried[backends.CONTROL]
    text = (
        f"{', '.join(f'{number} attempts in {name}' for name, number in boundaries.items())}: "
        f"{len(escaped)} succeeded; {controls - len(unproven)} of {controls} succeed unsandboxed; another turn takes, "
        f"beside an attacker that has a core, {ratios} times as long as beside a plain loop that keeps one busy (and "
        f"as alone; that loop itself: {loop:.2f}); at most {_MOST_SLOWER}"
        f"{''.join(f'; not on this machine: {name}' for name in absent)}"
    )
    if escaped or unproven:
        wrong = [f"{outcome.backend}: {outcome.attempt}" for outcome in escaped] + [
            f"proves nothing: {name}" for name in unproven
        ]
        text = f"{len(wrong)} attempts are not as they should be: {'; '.join(wrong)}. {text}"
    slowed = worst > (_SANE if quick else _MOST_SLOWER)
    enough = all(number >= _FEWEST for number in boundaries.values()) or quick
    return Figure(
        text=text,
        holds=not escaped and not unproven and not missing and enough and not slowed,
        details={
            "attempts": dict(tried),
            "slowdown": {
                f"{name}: {slowdown.kind}": [
                    round(slowdown.ratio, 3),
                    round(slowdown.alone, 3),
                    round(slowdown.loop, 3),
                ]
                for name, found in slow
                for slowdown in found
            },
            "peaks": {f"{outcome.backend}: {outcome.attempt}": outcome.peak for outcome in outcomes if outcome.peak},
        },
    )


async def _attempts(*, quick: bool) -> Sequence[Outcome]:
    """In a process of its own: root gives it a network where the addresses of cloud metadata answer."""
    apart = ("unshare", "--net", "--") if os.geteuid() == 0 and shutil.which("unshare") else ()
    options = [*(["quick"] if quick else []), *(["own-network"] if apart else [])]
    process = await asyncio.create_subprocess_exec(
        *apart, sys.executable, "-m", "bench.support.escape", *options, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    outcomes = []
    async for line in process.stdout:
        if line.startswith(b"{"):
            outcome = Outcome(**json.loads(line))
            outcomes.append(outcome)
            if outcome.succeeded != (outcome.backend == backends.CONTROL):
                print(f"  {outcome.backend}: {outcome.attempt}: {outcome.said!r}", flush=True)
    if await process.wait() != 0:
        raise RuntimeError("the suite did not come to its end")
    return outcomes


async def _slowdowns(opened: backends.Open, rounds: int) -> tuple[str, Sequence[neighbour.Slowdown]]:
    root = neighbour.new_root()
    try:
        async with opened(root) as backend:
            return backend.name, await neighbour.measure(backend, rounds)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
