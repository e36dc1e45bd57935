"""Removes containers that belong to no living turn: their worker and guardian both died, or the machine was
rebooted.
"""

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from footplate.environments.docker import holders, labels, meeting
from footplate.environments.docker.engine import connected, remove

log = structlog.get_logger(__name__)

Lapsed = Callable[[str], Awaitable[bool]]
"""Returns whether the lease of a worker is known and has expired. An unknown worker may be starting, or belong to
another installation.
"""
_OLD: Final = 86_400.0
_ALIVE: Final = frozenset({"running", "paused", "restarting", "removing"})


@dataclass(frozen=True, slots=True)
class Left:
    """A container of Footplate that the engine lists."""

    id: str
    name: str
    labels: Mapping[str, str]
    state: str
    age: float


async def abandoned(host: str, *, lapsed: Lapsed | None = None) -> Sequence[Left]:
    """Returns the containers without a living owner. An owner in another pid namespace is not visible from here, so it
    is judged by its worker's lease. If that cannot be looked up either, a container is removed only if nothing ran in
    it for a day.
    """
    async with connected(host) as docker:
        listed = await docker.containers.list(all=1, filters=json.dumps({"label": [labels.HOLDER]}))
    found = [
        Left(
            id=entry["Id"],
            name=entry["Names"][0].removeprefix("/"),
            labels=entry["Labels"],
            state=entry["State"],
            age=time.time() - entry["Created"],
        )
        for entry in listed
    ]
    return [left for left in found if await _is_nobodys(left, lapsed)]


async def sweep(host: str, *, sockets: Path | None = None, lapsed: Lapsed | None = None) -> Sequence[Left]:
    """Removes the containers that `find_abandoned` returns, and abandoned rendezvous sockets. Raises `Unavailable`."""
    found = await abandoned(host, lapsed=lapsed)
    async with connected(host) as docker:
        for left in found:
            await remove(docker, left.id)
            log.info(
                "abandoned container removed",
                action="docker.swept",
                container=left.name,
                session=left.labels.get(labels.SESSION),
            )
    if sockets is not None:
        meeting.sweep(sockets)
    return found


async def _is_nobodys(left: Left, lapsed: Lapsed | None) -> bool:
    lives = holders.lives(left.labels[labels.HOLDER])
    if lives is not None:
        return not lives
    if left.state not in _ALIVE and left.age > _OLD:
        return True
    return lapsed is not None and await lapsed(left.labels.get(labels.WORKER, ""))
