"""The pages that each statement reads, from the plans that PostgreSQL logs (`auto_explain`)."""

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any, Final

import asyncpg

from bench.prove.cluster import Cluster
from footplate.store.database import SQL

SETTINGS: Final = {
    "autovacuum": "off",
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "-1",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
}
"""Of a server that logs plans while `logged` is open, and has no table statistics but those that it is told to make."""

_PLAN: Final = re.compile(r"LOG:  duration: [\d.]+ ms  plan:\n(?P<plan>.*)", re.DOTALL)
_MESSAGE: Final = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ \[\d+\] ", re.MULTILINE)
_NAMES: Final = {" ".join(text.split()): name for name, text in SQL.items()}
_PERIODIC: Final = {"heads", "renew_lease"}
"""Statements that run every second, whatever sessions do."""
_NAMED_BY: Final = 40
"""Characters of a statement that has no name: one of a trigger."""
_RELOAD_SECONDS: Final = 0.3


@asynccontextmanager
async def logged(database: asyncpg.Connection) -> AsyncIterator[None]:
    await _log_above(database, 0)
    try:
        yield
    finally:
        await _log_above(database, -1)


async def pages(cluster: Cluster, work: Awaitable[None]) -> dict[str, float]:
    """What is read while `work` is done, by statement: the median of its runs, each over all nodes of its plan."""
    assert cluster.stack.postgres is not None
    log = cluster.stack.postgres.log
    before = len(log.read_text())
    await work
    found: dict[str, list[int]] = defaultdict(list)
    for message in _MESSAGE.split(log.read_text()[before:]):
        if logged := _PLAN.match(message):
            plan = json.loads(logged["plan"])
            text = " ".join(plan["Query Text"].split())
            name = _NAMES.get(text, text[:_NAMED_BY])
            if name not in _PERIODIC:
                found[name].append(sum(_read(plan["Plan"])))
    return {name: median(counts) for name, counts in sorted(found.items())}


def _read(node: dict[str, Any]) -> Iterator[int]:
    """Of each node by itself: what is logged includes its children. One that ran after its parent is not in there."""
    children = node.get("Plans", ())
    yield max(0, _blocks(node) - sum(map(_blocks, children)))
    for child in children:
        yield from _read(child)


def _blocks(node: dict[str, Any]) -> int:
    blocks: int = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
    return blocks


async def _log_above(database: asyncpg.Connection, milliseconds: int) -> None:
    await database.execute(f"alter system set auto_explain.log_min_duration = {milliseconds}")
    await database.execute("select pg_reload_conf()")
    await asyncio.sleep(_RELOAD_SECONDS)
