"""A session moves between hosts with its shell's directory and variables, its HOME and its files."""

import secrets
from typing import Final

from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.host_moves import move_sessions

_SESSIONS: Final = 5
_SESSIONS_QUICK: Final = 2
_MOVES: Final = 50
_LEASES: Final = {"FOOTPLATE_LEASE": "5", "FOOTPLATE_HEARTBEAT_TIMEOUT": "8"}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    sessions = _SESSIONS_QUICK if quick else _SESSIONS
    async with open_cluster(workers=0, environment=_LEASES) as cluster, Client(cluster) as client:
        found = await move_sessions(
            cluster,
            client,
            sessions=sessions,
            moves=2 if quick else _MOVES // sessions,
            backend=environment_backends.default_backend(),
            seed=seed,
        )
    for fault in found.faults:
        print(f"  FAULT {fault}", flush=True)
    return Figure(
        headline=f"{found.moves} moves to another host, {len(found.faults)} calls found a wrong state",
        summary=f"workers were killed at random moments, so that sessions moved {found.moves} times between two hosts, "
        f"{found.interrupted_turns} times within a turn: {found.calls} calls compared the directory and a variable of "
        f"the shell, a file in HOME and one in the working tree with those that the last call had left, and "
        f"{len(found.faults)} times they differed",
        holds=not found.faults and found.calls > 0 and (quick or found.interrupted_turns > found.moves // 4),
        details={"faults": [*found.faults], "interrupted_turns": found.interrupted_turns, "calls": found.calls},
    )
