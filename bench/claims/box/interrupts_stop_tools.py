"""An interrupt ends all processes of a turn within 1 s; a tool that ignores its timeout is killed within 6 s of it.

Measured through the whole stack in every backend: from the interrupt request until the host sees the last process gone.
The output that a stubborn tool printed before its end is in its result.
"""

import time
from dataclasses import dataclass
from typing import Final

from bench.prove.figure import Figure, require, time_limit
from bench.support import environment_backends
from bench.support.box.stubborn_processes import StubbornProcesses
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from footplate.domain.sessions import events
from footplate.testing import replies, text, tool

_MAX_INTERRUPT_SECONDS: Final = 1.0
_MAX_SECONDS_AFTER_TIMEOUT: Final = 6.0
_TIMEOUT_SECONDS: Final = 1.0
_UNRULY_PROCESSES: Final = 5


@dataclass(frozen=True, slots=True)
class BackendTimes:
    backend: str
    interrupted: list[float]
    after_timeout: list[float]

    @property
    def p95(self) -> float:
        return sorted(self.interrupted)[max(0, round(0.95 * len(self.interrupted)) - 1)]


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    interrupts, stubborn_tools = (3, 1) if quick else (60, 5)
    found = []
    for backend in environment_backends.available_backends()[: 1 if quick else None]:
        async with (
            environment_backends.backend_settings(backend) as settings,
            open_cluster(environment=settings) as cluster,
            Client(cluster) as client,
        ):
            found.append(
                BackendTimes(
                    backend,
                    [await _measure_interrupt(cluster, client) for _ in range(interrupts)],
                    [await _measure_stubborn_tool(cluster, client) for _ in range(stubborn_tools)],
                )
            )
    by_backend = "; ".join(
        f"{times.backend}: {len(times.interrupted)} interrupts, all processes gone after p95 {times.p95:.2f} s, "
        f"{len(times.after_timeout)} stubborn tools gone at most {max(times.after_timeout):.1f} s after their timeout"
        for times in found
    )
    within, after_limit = (
        time_limit(_MAX_INTERRUPT_SECONDS, quick=quick),
        time_limit(_MAX_SECONDS_AFTER_TIMEOUT, quick=quick),
    )
    return Figure(
        headline=f"{sum(len(times.interrupted) for times in found)} interrupts: p95 "
        f"{max(times.p95 for times in found):.2f} s at most; stubborn tools gone after "
        f"{max(max(times.after_timeout) for times in found):.1f} s",
        summary=f"{by_backend} (limits: {_MAX_INTERRUPT_SECONDS:g} and {_MAX_SECONDS_AFTER_TIMEOUT:g} s); "
        f"their output is in their results",
        holds=all(times.p95 < within and max(times.after_timeout) <= after_limit for times in found),
        details={
            times.backend: {
                "interrupted": [round(seconds, 3) for seconds in times.interrupted],
                "deaf": [round(seconds, 3) for seconds in times.after_timeout],
            }
            for times in found
        },
    )


async def _measure_interrupt(cluster: Cluster, client: Client) -> float:
    sleepers = StubbornProcesses()
    await cluster.model.install(
        "unruly", replies([tool("bash", {"command": sleepers.hiding_commands})], [text("never said")])
    )
    session_id = await client.session()
    async with client.stream(session_id) as stream:
        await client.send_text(session_id, "Go. [[script:unruly]]")
        await sleepers.wait_started(_UNRULY_PROCESSES)
        began = time.monotonic()
        await client.interrupt(session_id)
        ended = await sleepers.wait_gone()
        await stream.until_idle()
    return ended - began


async def _measure_stubborn_tool(cluster: Cluster, client: Client) -> float:
    """Returns the seconds from the timeout of a stubborn tool to its end."""
    sleepers = StubbornProcesses()
    call = tool("bash", {"command": sleepers.signal_ignoring_command, "timeout_ms": int(_TIMEOUT_SECONDS * 1000)})
    await cluster.model.install("deaf", replies([call], [text("Well.")]))
    session_id = await client.session()
    async with client.stream(session_id) as stream:
        await client.send_text(session_id, "Go. [[script:deaf]]")
        await sleepers.wait_started(1)
        began = time.monotonic()
        ended = await sleepers.wait_gone()
        seen = await stream.until_idle()
    (result,) = [event for event in seen if event["type"] == events.AGENT_TOOL_RESULT]
    output = "".join(block["text"] for block in result["content"])
    require(holds="partial" in output, otherwise=f"the output that a tool printed before its end is lost: {output!r}")
    require(holds="timed out after 1 s" in output, otherwise=f"a result does not mention the timeout: {output!r}")
    return ended - began - _TIMEOUT_SECONDS
