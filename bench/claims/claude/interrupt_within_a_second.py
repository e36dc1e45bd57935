"""An interrupted turn is idle within a second and keeps its text so far, and the session can continue."""

import asyncio
import random
import time
from typing import Final

from bench.prove.figure import Figure, time_limit
from bench.support.claude.percentiles import percentile
from bench.support.clients import Client, texts
from bench.support.cluster import open_cluster
from footplate.testing import replies, text, tool

_LONG_TEXT: Final = " ".join(f"word{number}" for number in range(200))
_SCRIPTS: Final = {
    "talks": replies([text(_LONG_TEXT, chunks=200, delay=0.05)]),
    "works": replies([text("Wait for me."), tool("Bash", {"command": "sleep 60"})], [text("Done.")]),
    "goes-on": replies([text("Here I am.")]),
}
_FULL, _QUICK = 100, 4
_MAX_SECONDS: Final = 1.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    faults: list[str] = []
    waits: list[float] = []
    async with open_cluster() as cluster, Client(cluster) as client:
        for name, script in _SCRIPTS.items():
            await cluster.model.install(name, script)
        agent = await client.agent(extra_body={"harness": "claude"})
        for number in range(_QUICK if quick else _FULL):
            script_name = ("talks", "works")[number % 2]
            waited, found = await _measure_interrupt(client, agent, script_name)
            waits.append(waited)
            faults += found
    p95 = percentile(waits, 95)
    if p95 > time_limit(_MAX_SECONDS, quick=quick):
        faults.append(f"from interrupt to idle p95 {p95:.2f} s, more than {_MAX_SECONDS:g}")
    headline = f"{len(waits)} interrupts: idle after p95 {p95:.2f} s (limit {_MAX_SECONDS:g})"
    summary = (
        f"{len(waits)} interrupts, half of them while the model streamed and half while a tool ran: idle after p50 "
        f"{percentile(waits, 50):.2f} s, p95 {p95:.2f} s (limit {_MAX_SECONDS:g}); the text so far was "
        f"stored, and every "
        f"session continued"
    )
    if faults:
        headline, summary = f"{headline}, {len(faults)} faults", faults[0]
    for fault in faults:
        print(f"  FAULT {fault}", flush=True)
    return Figure(headline=headline, summary=summary, holds=not faults, details={"waits": [*map(float, waits)]})


async def _measure_interrupt(client: Client, agent: str, script_name: str) -> tuple[float, list[str]]:
    session_id = await client.session(agent)
    async with client.stream(session_id, deltas=["agent.message"]) as stream:
        await client.send_text(session_id, f"Begin. [[script:{script_name}]]")
        await stream.until("event_delta" if script_name == "talks" else "agent.tool_use")
        await asyncio.sleep(random.uniform(0.1, 1.0))
        began = time.monotonic()
        await client.interrupt(session_id)
        events = await stream.until_idle()
        waited = time.monotonic() - began
        messages = texts([*stream.received])
        faults = []
        if script_name == "talks" and not (len(messages) == 1 and messages[0] and _LONG_TEXT.startswith(messages[0])):
            faults.append(f"{session_id}: the stored text is {messages}")
        if script_name == "works" and "agent.tool_result" not in [event["type"] for event in events]:
            faults.append(f"{session_id}: the call has no result")
        await client.send_text(session_id, "Go on. [[script:goes-on]]")
        await stream.until_idle()
        if texts(stream.received)[-1] != "Here I am.":
            faults.append(f"{session_id}: the session does not continue")
    return waited, faults
