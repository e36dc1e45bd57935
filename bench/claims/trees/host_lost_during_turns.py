"""When a host and its disk are lost during turns, another host finishes them with their files.

The files have every change up to the last completed call, and none of a call that was running.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import Figure, require
from bench.support import environment_backends
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.host_loss import turn_script
from bench.support.host_loss.seaweedfs import SeaweedServer
from bench.support.host_loss.trial import HostLossFindings, HostLossTrials, make_git_project

_LOSSES: Final = 50
_SESSIONS: Final = 5
_SESSIONS_QUICK: Final = 2
_MAX_TURN_SECONDS: Final = 12.0
"""Seconds that a turn takes, about, while several run."""
_MAX_TURN_SECONDS_QUICK: Final = 4.0
_LEASES: Final = {"FOOTPLATE_LEASE": "10", "FOOTPLATE_HEARTBEAT_TIMEOUT": "20"}
"""Long, so that the next worker keeps its lease however busy the machine is."""
_LEASES_QUICK: Final = {"FOOTPLATE_LEASE": "4", "FOOTPLATE_HEARTBEAT_TIMEOUT": "6"}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    try:
        await asyncio.to_thread(make_git_project, root)
        found = {"a folder": await _lose_hosts(root, {}, quick=quick)}
        if not quick:
            server = SeaweedServer(root / "seaweed")
            await server.start()
            try:
                settings = {**server.variables, "FOOTPLATE_OBJECTS_URL": server.url}
                found["S3 (SeaweedFS)"] = await _lose_hosts(root, settings, quick=quick)
            finally:
                await server.stop()
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    by_store = "; ".join(
        f"objects in {name}: {one.interrupted_turns} losses, {one.restored_sessions} of them after "
        f"completed calls ({one.calls_before_loss} in all)"
        for name, one in found.items()
    )
    faults = sum(len(one.faults) for one in found.values())
    return Figure(
        headline=f"{sum(one.interrupted_turns for one in found.values())} hosts lost in turns: {faults} "
        f"wrong files afterwards",
        summary=f"a worker was killed and its disk deleted in turns of {turn_script.CALLS} calls, in both "
        f"harnesses, with "
        f"projects and without: {by_store}; the next worker finished every turn, and {faults} times its files "
        "differed from those after the completed calls",
        holds=not faults,
        details={name: {"moments": one.interrupted_turns, "faults": [*one.faults]} for name, one in found.items()},
    )


async def _lose_hosts(root: Path, settings: dict[str, str], *, quick: bool) -> HostLossFindings:
    environment = {**(_LEASES_QUICK if quick else _LEASES), "FOOTPLATE_PROJECTS_ROOT": str(root), **settings}
    async with open_cluster(workers=0, environment=environment) as cluster, Client(cluster) as client:
        for harness in turn_script.HARNESSES:
            await cluster.model.install(f"work-{harness}", turn_script.script(harness))
        await client.sdk.post("/v1/projects", body={"path": "app"}, cast_to=dict[str, Any])
        objects = settings.get("FOOTPLATE_OBJECTS_URL") or f"file://{cluster.directory}/data/objects"
        trials = HostLossTrials(
            cluster, client, backend=environment_backends.default_backend(), objects=objects, seed=len(objects)
        )
        while trials.findings.interrupted_turns < (1 if quick else _LOSSES):
            await trials.lose_host(
                _SESSIONS_QUICK if quick else _SESSIONS,
                kill_after=_MAX_TURN_SECONDS_QUICK if quick else _MAX_TURN_SECONDS,
            )
            print(f"  {trials.findings.interrupted_turns} hosts lost, {len(trials.findings.faults)} faults", flush=True)
    for fault in trials.findings.faults:
        print(f"  FAULT {fault}", flush=True)
    enough = quick or trials.findings.restored_sessions > trials.findings.interrupted_turns / 2
    require(holds=enough, otherwise="too few turns had completed a call when their host was lost")
    return trials.findings
