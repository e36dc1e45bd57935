"""No attempt of the escape suite succeeds, and an attacking agent hardly slows down other turns.

Each attempt runs in an environment of its own and is judged from the host. The same attempt has to succeed without a
sandbox: an attempt that cannot succeed anywhere would prove nothing.
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
from bench.support import environment_backends as engines
from bench.support.escape import attacked_backends, neighbour_slowdown, suite
from bench.support.escape.attempt import CATEGORIES
from bench.support.escape.suite import AttemptOutcome

_MAX_SLOWDOWN: Final = 1.25
_MAX_SLOWDOWN_QUICK: Final = 3.0
_MIN_ATTEMPTS: Final = 60


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    outcomes = await _run_attempts(quick=quick)
    measured_backends = [
        attacked_backends.BOUNDARIES[name]
        for name in engines.available_backends()
        if name in attacked_backends.BOUNDARIES
    ]
    slowdowns = [
        await _measure_slowdowns(opened, rounds=2 if quick else 25)
        for opened in measured_backends[: 1 if quick else None]
    ]
    escaped, unproven = suite.find_escapes(outcomes), suite.find_failed_controls(outcomes)
    attempt_counts = Counter(outcome.backend for outcome in outcomes)
    boundaries = {name: number for name, number in attempt_counts.items() if name != attacked_backends.CONTROL}
    missing = set(CATEGORIES) - {attempt.category for attempt in suite.ATTEMPTS}
    absent = sorted(set(attacked_backends.BOUNDARIES) - set(engines.available_backends()))
    worst = max(slowdown.ratio for _, found in slowdowns for slowdown in found)
    ratios = "; ".join(
        f"in {name} " + ", ".join(f"{slowdown.kind} {slowdown.ratio:.2f} ({slowdown.alone:.2f})" for slowdown in found)
        for name, found in slowdowns
    )
    loop = statistics.median(slowdown.loop for _, found in slowdowns for slowdown in found)
    controls = attempt_counts[attacked_backends.CONTROL]
    summary = (
        f"{', '.join(f'{number} attempts in {name}' for name, number in boundaries.items())}: "
        f"{len(escaped)} succeeded; {controls - len(unproven)} of {controls} succeed unsandboxed; duration of another "
        f"turn while an attacker occupies a core, as a multiple of its duration beside a plain busy loop (in brackets: "
        f"of its duration alone): {ratios}; the busy loop itself: {loop:.2f}; limit {_MAX_SLOWDOWN}"
        f"{''.join(f'; not available on this machine: {name}' for name in absent)}"
    )
    if escaped or unproven:
        wrong = [f"{outcome.backend}: {outcome.attempt}" for outcome in escaped] + [
            f"fails without a sandbox too: {name}" for name in unproven
        ]
        summary = f"{len(wrong)} attempts with the wrong outcome: {'; '.join(wrong)}. {summary}"
    slowed = worst > (_MAX_SLOWDOWN_QUICK if quick else _MAX_SLOWDOWN)
    enough = all(number >= _MIN_ATTEMPTS for number in boundaries.values()) or quick
    names = " and ".join(dict.fromkeys(name.split()[0] for name in boundaries))
    headline = (
        f"{sum(boundaries.values())} attempts in {names}: {len(escaped)} succeeded; "
        f"{controls - len(unproven)} of {controls} succeed unsandboxed"
    )
    if missing or not enough:
        headline = f"the escape suite is incomplete: {len(missing)} categories have no attempt"
    elif slowed and not escaped and not unproven:
        headline = f"another turn takes {worst:.2f} times as long beside an attacker (limit {_MAX_SLOWDOWN})"
    return Figure(
        headline=headline,
        summary=summary,
        holds=not escaped and not unproven and not missing and enough and not slowed,
        details={
            "attempts": dict(attempt_counts),
            "slowdown": {
                f"{name}: {slowdown.kind}": [
                    round(slowdown.ratio, 3),
                    round(slowdown.alone, 3),
                    round(slowdown.loop, 3),
                ]
                for name, found in slowdowns
                for slowdown in found
            },
            "peaks": {f"{outcome.backend}: {outcome.attempt}": outcome.peak for outcome in outcomes if outcome.peak},
        },
    )


async def _run_attempts(*, quick: bool) -> Sequence[AttemptOutcome]:
    """Runs the attempts in a separate process; as root, in a network where cloud metadata addresses respond."""
    network_prefix = ("unshare", "--net", "--") if os.geteuid() == 0 and shutil.which("unshare") else ()
    options = [*(["quick"] if quick else []), *(["own-network"] if network_prefix else [])]
    process = await asyncio.create_subprocess_exec(
        *network_prefix, sys.executable, "-m", "bench.support.escape", *options, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    outcomes = []
    async for line in process.stdout:
        if line.startswith(b"{"):
            outcome = AttemptOutcome(**json.loads(line))
            outcomes.append(outcome)
            if outcome.succeeded != (outcome.backend == attacked_backends.CONTROL):
                print(f"  {outcome.backend}: {outcome.attempt}: {outcome.output!r}", flush=True)
    if await process.wait() != 0:
        raise RuntimeError("the escape suite did not finish")
    return outcomes


async def _measure_slowdowns(
    open_backend: attacked_backends.OpenBackend, rounds: int
) -> tuple[str, Sequence[neighbour_slowdown.Slowdown]]:
    root = neighbour_slowdown.new_root()
    try:
        async with open_backend(root) as backend:
            return backend.name, await neighbour_slowdown.measure_slowdown(backend, rounds)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
