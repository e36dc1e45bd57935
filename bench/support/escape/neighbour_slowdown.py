"""Measures how much an attacker with one core slows another turn on the same worker.

Two cores may be two threads of one core, or share their power. Then a plain loop outside the sandbox slows everything
that computes beside it, by a third on some machines. So the turn is compared with one beside such a loop: the result is
what the attacker takes beyond its one core. The slowdown against running alone is reported as well.
"""

import asyncio
import itertools
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.support.escape.attacked_backends import AttackedBackend
from footplate.domain.ports.engine import OpenEnvironment

KINDS: Final = {
    "computing": "for n in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait",
    "forking": "while :; do /bin/true; done",
    "printing": "yes 'all that the worker has to read'",
    "allocating": "while :; do head -c 300M /dev/zero | tail -c 1 >/dev/null; done",
}
"""The commands of the attackers."""
_SETTLES: Final = 0.3
_WORK: Final = "n=0; while [ $n -lt 60000 ]; do n=$((n + 1)); done; echo $n"


@dataclass(frozen=True, slots=True)
class Slowdown:
    kind: str
    ratio: float
    """Time beside the attacker, relative to beside a loop that keeps one core busy."""
    alone: float
    """Time beside the attacker, relative to alone."""
    loop: float
    """Time beside that loop, relative to alone: the effect of the machine."""


async def measure_slowdown(backend: AttackedBackend, rounds: int) -> list[Slowdown]:
    """Alternates: each turn beside an attacker follows one alone and one beside a loop, so that fluctuations of the
    machine cancel out.
    """
    found = []
    async with backend.open_session("working") as working:
        await _run_turn(working)
        for kind, attack in KINDS.items():
            alone: list[float] = []
            looped: list[float] = []
            attacked: list[float] = []
            for _ in range(rounds):
                alone.append(await _run_turn(working))
                async with _busy_loop():
                    await asyncio.sleep(_SETTLES)
                    looped.append(await _run_turn(working))
                async with backend.open_session(f"attacker-{next(_NUMBERS)}") as attacker:
                    await attacker.run(["true"], timeout=60)  # starting an environment is not part of the attack
                    attacking = asyncio.create_task(attacker.run(["bash", "-c", attack], timeout=600))
                    await asyncio.sleep(_SETTLES)
                    attacked.append(await _run_turn(working))
                    attacking.cancel()
                    await asyncio.gather(attacking, return_exceptions=True)
            ratios = [_median_ratio(*pair) for pair in ((attacked, looped), (attacked, alone), (looped, alone))]
            found.append(Slowdown(kind, *ratios))
    return found


def _median_ratio(these: Sequence[float], those: Sequence[float]) -> float:
    return statistics.median(this / that for this, that in zip(these, those, strict=True))


@asynccontextmanager
async def _busy_loop() -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec("sh", "-c", "while :; do :; done")
    try:
        yield
    finally:
        process.kill()
        await process.wait()


_NUMBERS = itertools.count()


async def _run_turn(environment: OpenEnvironment) -> float:
    """Does the work of a turn: commands, a file that is written and read, and a search. Returns its seconds."""
    began = time.monotonic()
    for _ in range(4):
        await environment.shell(_WORK, timeout=60)
        await environment.write("notes.txt", b"words\n" * 1000)
        await environment.read("notes.txt")
        await environment.run(["grep", "-rn", "words", "."], timeout=60)
    return time.monotonic() - began


def new_root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="footplate-neighbour-"))
    root.chmod(0o755)
    return root
