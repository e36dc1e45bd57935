"""Isolation is cheap: sandboxed commands, commands in containers and proxied model requests cost little extra.

The figures are medians, each compared with the same work without Footplate in the same run. Each module of
`bench.support.speed` describes its measurement.
"""

from typing import Final

from bench.prove.figure import Figure, time_limit
from bench.support import environment_backends
from bench.support.speed import docker_overhead, proxy_overhead, sandbox_overhead

_QUICK_SLACK: Final = 3.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    rounds, slack = (20, _QUICK_SLACK) if quick else (300, 1.0)
    found = [await sandbox_overhead.measure(rounds, slack=slack)]
    docker_is_missing = "docker" not in environment_backends.available_backends()
    if not docker_is_missing:
        found.append(await docker_overhead.measure(rounds, slack=slack))
    found.append(await proxy_overhead.measure(100 if quick else 2000, slack=time_limit(1.0, quick=quick)))
    ratio, limit = found[0].figures["ratio"], found[0].figures["limit"]
    headline = f"a sandboxed command takes {ratio:.2f} times bare bubblewrap (limit {limit:g})"
    failed = sum(not measured.holds for measured in found)
    if failed and found[0].holds:
        headline = f"{failed} of {len(found)} measurements exceed their limits"
    return Figure(
        headline=headline,
        summary="; ".join(measured.text for measured in found)
        + ("; not available on this machine: docker" if docker_is_missing else ""),
        holds=all(measured.holds for measured in found),
        details={name: value for measured in found for name, value in measured.details.items()},
    )
