"""Deletes Temporal's state, or replaces it by an older copy, while turns run and messages arrive."""

import asyncio
import random
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Final

from bench.support.crash import interrupted_turn
from bench.support.crash.cell import Cell
from bench.support.crash.session_check import check_session
from bench.support.crash.stream_watcher import StreamWatcher
from footplate.stack.services.temporal import Temporal

COPY_TIMES: Final = ("before", "during", "after")
"""When the copy is taken that is restored later: before, during or after the first turn of the sessions."""
SCRIPTS: Final = ("first", "second", "third")
"""One script for each turn of a session."""
_SESSIONS: Final = 3
_PATIENCE: Final = 240.0


async def install_scripts(cell: Cell) -> None:
    for name in SCRIPTS:
        await cell.cluster.model.install(name, interrupted_turn.build_script("{script}.{n}"))


async def lose_state(cell: Cell, chance: random.Random, *, sends_while_down: bool) -> None:
    """Runs three turns in some sessions. Temporal starts empty at a random time of the second or third."""
    await _run_round(cell, chance, copy_time=None, sends_while_down=sends_while_down)
    cell.findings.tallies["states_lost"] += 1


async def restore_copy(cell: Cell, chance: random.Random, copy_time: str, *, sends_while_down: bool) -> None:
    await _run_round(cell, chance, copy_time=copy_time, sends_while_down=sends_while_down)
    cell.findings.tallies[f"copies_{copy_time}"] += 1


async def _run_round(cell: Cell, chance: random.Random, *, copy_time: str | None, sends_while_down: bool) -> None:
    temporal = cell.cluster.stack.temporal
    assert temporal is not None
    copy = cell.cluster.directory / "temporal-copy.db"
    first, second, third = (f"Leave your lines. [[script:{name}]]" for name in SCRIPTS)
    async with AsyncExitStack() as exits:
        watchers = [
            await exits.enter_async_context(StreamWatcher(cell.client, await cell.create_session()))
            for _ in range(_SESSIONS)
        ]

        async def send(text: str) -> None:
            for watcher in watchers:
                await cell.client.send_text(watcher.session_id, text)

        if copy_time == "before":
            copy_state(temporal, copy)
        await send(first)
        if copy_time == "during":
            await asyncio.sleep(chance.random() * cell.turn_time)
            copy_state(temporal, copy)
        await asyncio.gather(*(watcher.wait_for_turns(1, patience=_PATIENCE) for watcher in watchers))
        if copy_time == "after":
            copy_state(temporal, copy)
        await send(second)
        if not sends_while_down:
            await send(third)
        await asyncio.sleep(chance.random() * cell.turn_time * (1 if sends_while_down else 2))
        await temporal.kill()
        if sends_while_down:
            await send(third)
        replace_state(temporal, copy if copy_time else None)
        await temporal.start()
        await asyncio.gather(*(watcher.wait_for_turns(len(SCRIPTS), patience=_PATIENCE) for watcher in watchers))
        for watcher in watchers:
            cell.findings.add(
                await check_session(
                    cell.cluster,
                    watcher.session_id,
                    watcher.seen,
                    turns=len(SCRIPTS),
                    calls=len(SCRIPTS) * interrupted_turn.CALLS,
                )
            )


def copy_state(temporal: Temporal, copy: Path) -> None:
    """Copies the running server's database consistently."""
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(temporal.database_file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def replace_state(temporal: Temporal, copy: Path | None) -> None:
    for path in temporal.directory.glob(f"{temporal.database_file.name}*"):
        path.unlink()
    if copy is not None:
        copy.rename(temporal.database_file)
