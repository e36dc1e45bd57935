"""Kill workers at random while they run server-side tools: no call is made twice, and each lost outcome is reported."""

import secrets
import tempfile
from pathlib import Path

from bench.claims.core.kill_any_process import SETTINGS
from bench.prove.figure import Figure
from bench.support import external_harness, external_toolset
from bench.support.cluster import open_cluster

_CALLS_PER_SESSION = 10


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        target = Path(directory) / "installed"
        await external_harness.install_package(target)
        environment = {**SETTINGS, **external_harness.path_variables(target)}
        async with open_cluster(workers=2, environment=environment) as cluster:
            found = await external_toolset.call_under_kills(
                cluster,
                sessions=2 if quick else 40,
                calls_per_session=_CALLS_PER_SESSION,
                concurrent=2 if quick else 4,
                seed=seed,
            )
    for fault in found.faults:
        print(f"  FAULT {fault}", flush=True)
    calls = found.calls.total()
    by_harness = ", ".join(f"{count} with `{harness}`" for harness, count in sorted(found.calls.items()))
    headline = f"{calls} calls, {found.kills} kills: none was made twice, {found.unknown} have an unknown outcome"
    return Figure(
        headline=headline if not found.faults else f"{calls} calls, {found.kills} kills: {len(found.faults)} faults",
        summary=f"a toolset of a separate package was called {calls} times ({by_harness}) while a random worker was "
        f"killed {found.kills} times: no call was made twice, each has one result, and the {found.unknown} calls whose "
        f"outcome is unknown say so ({found.unknown_made} of them had reached the tool); {found.not_started} further "
        f"calls had not started, which the model learned; {len(found.faults)} faults",
        holds=not found.faults and found.kills > 0,
        details={"faults": [*found.faults], "kills": found.kills, "unknown": found.unknown},
    )
