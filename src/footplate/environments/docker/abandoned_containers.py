"""Removes abandoned containers: those whose worker and guardian process have died, and those from before a reboot of
the machine.
"""

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from footplate.environments.docker import container_owner, labels, rendezvous_socket
from footplate.environments.docker.engine_api import connect_engine, remove_container

log = structlog.get_logger(__name__)

LeaseCheck = Callable[[str], Awaitable[bool]]
"""Returns whether the lease of a worker is known and has expired. An unknown worker may be starting, or belong to
another installation.
"""
_MAX_STOPPED_AGE: Final = 86_400.0
_LIVE_STATES: Final = frozenset({"running", "paused", "restarting", "removing"})


@dataclass(frozen=True, slots=True)
class ListedContainer:
    """A container of Footplate that the engine lists."""

    id: str
    name: str
    labels: Mapping[str, str]
    state: str
    age: float


async def find_abandoned(host: str, *, is_lease_expired: LeaseCheck | None = None) -> Sequence[ListedContainer]:
    """Returns the containers without a living owner. An owner in another pid namespace is not visible from here, so it
    is judged by its worker's lease. If that cannot be looked up either, a container is removed only if nothing ran in
    it for a day.
    """
    async with connect_engine(host) as docker:
        listed = await docker.containers.list(all=1, filters=json.dumps({"label": [labels.OWNER]}))
    found = [
        ListedContainer(
            id=entry["Id"],
            name=entry["Names"][0].removeprefix("/"),
            labels=entry["Labels"],
            state=entry["State"],
            age=time.time() - entry["Created"],
        )
        for entry in listed
    ]
    return [container for container in found if await _is_abandoned(container, is_lease_expired)]


async def remove_abandoned(
    host: str, *, sockets: Path | None = None, is_lease_expired: LeaseCheck | None = None
) -> Sequence[ListedContainer]:
    """Removes the containers that `find_abandoned` returns, and abandoned rendezvous sockets. Raises `Unavailable`."""
    found = await find_abandoned(host, is_lease_expired=is_lease_expired)
    async with connect_engine(host) as docker:
        for container in found:
            await remove_container(docker, container.id)
            log.info(
                "abandoned container removed",
                action="docker.swept",
                container=container.name,
                session=container.labels.get(labels.SESSION),
            )
    if sockets is not None:
        rendezvous_socket.remove_abandoned(sockets)
    return found


async def _is_abandoned(container: ListedContainer, is_lease_expired: LeaseCheck | None) -> bool:
    owner_alive = container_owner.is_alive(container.labels[labels.OWNER])
    if owner_alive is not None:
        return not owner_alive
    if container.state not in _LIVE_STATES and container.age > _MAX_STOPPED_AGE:
        return True
    return is_lease_expired is not None and await is_lease_expired(container.labels.get(labels.WORKER, ""))
