"""A boundary costs little: a command in a sandbox, in a container and in an open shell, a request through the proxy.

Medians, each against the bare thing in the same run; what exactly is measured stands at the top of each module of
`bench.support.speed`.
"""

from typing import Final

from bench.prove.figure import Figure, time_limit
from bench.support import backends
from bench.support.speed import docker, proxy, sandbox

_SLACK: Final = 3.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    rounds, slack = (20, _SLACK) if quick else (300, 1.0)
    found = [await sandbox.measure(rounds, slack=slack)]
    absent = "docker" not in backends.present()
    if not absent:
        found.append(await docker.measure(rounds, slack=slack))
    found.append(await proxy.measure(100 if quick else 2000, slack=time_limit(1.0, quick=quick)))
    return Figure(
        text="; ".join(measured.text for measured in found) + ("; not on this machine: docker" if absent else ""),
        holds=all(measured.holds for measured in found),
        details={name: value for measured in found for name, value in measured.details.items()},
    )
