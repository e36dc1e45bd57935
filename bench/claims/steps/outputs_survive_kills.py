"""Files that agents leave for clients survive killed workers whole, and both official SDKs download them."""

from typing import Final

from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.outputs_under_kills import KILL_POINTS, SIZES, OutputTrial

_SESSIONS: Final = 8
_CALLS: Final = 5
_FILES_PER_CALL: Final = 5
_ROUNDS: Final = 2
"""In each round, a worker is killed at each failpoint, and some more times."""
_RANDOM_KILLS: Final = 3
_QUICK_POINTS: Final = ("upload_stored", "outputs_stored")
_LEASES: Final = {"FOOTPLATE_LEASE": "4", "FOOTPLATE_HEARTBEAT_TIMEOUT": "6", "FOOTPLATE_MAX_ATTEMPTS": "1000"}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with open_cluster(workers=0, environment=_LEASES) as cluster, Client(cluster) as client:
        trial = OutputTrial(cluster, client, backend=environment_backends.default_backend(), seed=6)
        sessions = [
            await trial.create_session(
                number,
                calls=2 if quick else _CALLS,
                files_per_call=4 if quick else _FILES_PER_CALL,
                sizes=SIZES[:8] if quick else SIZES,
            )
            for number in range(2 if quick else _SESSIONS)
        ]
        try:
            await trial.run(
                sessions,
                rounds=1 if quick else _ROUNDS,
                points=_QUICK_POINTS if quick else KILL_POINTS,
                random_kills=0 if quick else _RANDOM_KILLS,
            )
            await trial.check_downloads(sessions)
        finally:
            await trial.stop()
    found = trial.findings
    for fault in found.faults:
        print(f"  FAULT {fault}", flush=True)
    sizes = [file.size for session in sessions for call in session.calls for file in call]
    files, kills = len(sizes), found.kills.total()
    points = ", ".join(f"{point}: {count}" for point, count in found.kills.items())
    complete = all(found.downloads[sdk] == files for sdk in ("Python", "TypeScript"))
    return Figure(
        headline=f"{files} files, {kills} kills: {len(found.faults)} lost or torn, in both SDKs",
        summary=f"{len(sessions)} sessions of both harnesses left {files} files of 0 to "
        f"{max(sizes):,} bytes ({sum(sizes):,} in all) while their worker was killed {kills} times ({points}), "
        f"{found.lost_disks} times with its disk; {found.repeated_calls} calls were lost and made again; the SDKs "
        f"downloaded {found.downloads['Python']} (Python) and {found.downloads['TypeScript']} (TypeScript) files; "
        f"{len(found.faults)} were lost, torn or left without a row",
        holds=not found.faults and complete and kills > 0,
        details={"kills": {**found.kills}, "faults": [*found.faults], "bytes": sum(sizes)},
    )
