"""How much another turn on the same worker slows while an attacker has all that it may have: one core."""

import asyncio
import itertools
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.prove.escape.backends import Backend
from footplate.domain.running import OpenEnvironment

KINDS: Final = {
    "computing": "for n in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait",
    "forking": "while :; do /bin/true; done",
    "printing": "yes 'all that the worker has to read'",
    "allocating": "while :; do head -c 300M /dev/zero | tail -c 1 >/dev/null; done",
}
"""What it does with it."""
_WORK: Final = "n=0; while [ $n -lt 60000 ]; do n=$((n + 1)); done; echo $n"


@dataclass(frozen=True, slots=True)
class Slowdown:
    kind: str
    ratio: float


async def measure(backend: Backend, rounds: int) -> list[Slowdown]:
    """Paired: each turn beside an attacker follows one that was alone, so that the machine's own moods cancel out."""
    found = []
    async with backend.open("working") as working:
        await _turn(working)
        for kind, attack in KINDS.items():
            ratios = []
            for _ in range(rounds):
                alone = await _turn(working)
                async with backend.open(f"attacker-{next(_NUMBERS)}") as attacker:
                    await attacker.run(["true"], timeout=60)  # to start an environment is no attack
                    attacking = asyncio.create_task(attacker.run(["bash", "-c", attack], timeout=600))
                    await asyncio.sleep(0.3)
                    ratios.append(await _turn(working) / alone)
                    attacking.cancel()
                    await asyncio.gather(attacking, return_exceptions=True)
            found.append(Slowdown(kind, statistics.median(ratios)))
    return found


_NUMBERS = itertools.count()


async def _turn(environment: OpenEnvironment) -> float:
    """What an agent does in a turn: commands, a file that is written and read, a search."""
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
