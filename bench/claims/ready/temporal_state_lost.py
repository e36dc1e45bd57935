"""Temporal loses its state or is restored from an older copy: every message is processed, and no call runs twice."""

import random
import secrets
from typing import Final

from bench.claims.core.kill_any_process import SETTINGS
from bench.prove.figure import Figure
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.crash import interrupted_turn, temporal_state
from bench.support.crash.cell import Cell

_LOSSES: Final = 20
_RESTORES: Final = 10
"""For each time at which a copy is taken."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    chance = random.Random(seed)
    losses, restores = (1, 1) if quick else (_LOSSES, _RESTORES)
    copy_times = temporal_state.COPY_TIMES[1:2] if quick else temporal_state.COPY_TIMES
    async with (
        open_cluster(apis=1, workers=2, environment=SETTINGS) as cluster,
        Client(cluster) as client,
    ):
        await cluster.model.install(interrupted_turn.SCRIPT_NAME, interrupted_turn.build_script())
        cell = Cell(cluster, client, await client.agent())
        await temporal_state.install_scripts(cell)
        await cell.measure_turn_time(1)
        for number in range(losses):
            await temporal_state.lose_state(cell, chance, sends_while_down=number % 2 == 0)
            print(f"  {number + 1} of {losses} losses", flush=True)
        for copy_time in copy_times:
            for number in range(restores):
                await temporal_state.restore_copy(cell, chance, copy_time, sends_while_down=number % 2 == 0)
            print(f"  {restores} copies taken {copy_time} a turn restored", flush=True)
    return _figure(cell, losses, restores * len(copy_times))


def _figure(cell: Cell, losses: int, restores: int) -> Figure:
    found = cell.findings
    headline = f"{losses + restores} losses: all {found.turns} turns ended, none of {found.calls:,} calls ran twice"
    summary = (
        f"Temporal's state was deleted {losses} times and replaced by an older copy {restores} times while turns ran: "
        f"all {found.turns} accepted messages were processed, in {found.attempts} attempts; none of {found.calls} "
        f"calls ran twice, {found.unknown} have an unknown outcome; {found.positions} positions without gap, duplicate "
        f"or loss; no process was restarted by hand"
    )
    if found.faults:
        headline = f"{losses + restores} losses: {len(found.faults)} faults"
        summary = f"{len(found.faults)} faults, the first: {found.faults[0]}"
    return Figure(
        headline=headline,
        summary=summary,
        holds=not found.faults,
        details={"faults": list(found.faults), **found.tallies},
    )
