"""Results of earlier steps in a shell command: hostile values arrive as one word each, and never run as a command."""

import asyncio
import json
import random
import secrets
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from bench.prove.figure import Figure
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.queue.hostile_values import hostile_values
from bench.support.queue.http_access import HttpQueue

_VALUES: Final = 300
_QUICK_VALUES: Final = 24
_SESSIONS: Final = 5
_COMMANDS: Final = (
    "python3 show.py ${steps.source.stdout}",
    "python3 show.py first ${steps.source.stdout} last",
    "true && python3 show.py ${steps.source.stdout} | cat",
)
_SHOW: Final = "import json, sys; print(json.dumps(sys.argv[1:]))"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    chance = random.Random(seed)
    values = hostile_values(_QUICK_VALUES if quick else _VALUES, chance)
    tallies: Counter[str] = Counter()
    faults: list[str] = []
    async with open_cluster(apis=1, workers=1) as cluster, Client(cluster) as client:
        agent = await client.agent(extra_body={"harness": "shell"})
        async with asyncio.TaskGroup() as group:
            for number in range(_SESSIONS):
                group.create_task(_run(cluster, client, agent, values[number::_SESSIONS], tallies, faults))
    holds = not faults and tallies["arrived"] + tallies["refused"] == len(values)
    return Figure(
        headline=f"{len(values)} hostile values: none became a command"
        if holds
        else f"{len(faults)} faults in {len(values)} hostile values",
        summary=f"{len(values)} hostile values as results of earlier steps in shell commands: {tallies['arrived']} "
        f"arrived as exactly one argument, {tallies['refused']} were refused before the command ran (too long, or the "
        f"program would have run code); no command ran that was not written"
        + (f"; {len(faults)} faults, the first: {faults[0]}" if faults else ""),
        holds=holds,
        details={"faults": [*faults[:10]], **tallies},
    )


async def _run(
    cluster: Cluster, client: Client, agent: str, values: Sequence[str], tallies: Counter[str], faults: list[str]
) -> None:
    session_id = await client.session(agent)
    async with HttpQueue(cluster.base_urls[0], cluster.key, session_id) as queue:
        await queue.wait_for(
            await queue.add({"kind": "shell", "command": f"printf %s '{_SHOW}' > show.py"}), "completed", "failed"
        )
        for number, value in enumerate(values):
            found = await _substitute(queue, value, _COMMANDS[number % len(_COMMANDS)])
            _judge(found, value, tallies, faults)
        final = await queue.wait_for(
            await queue.add({"kind": "shell", "command": "ls", "on_failure": "continue"}), "completed", "failed"
        )
        if "pwned" in str(final["result"]["stdout"]).split():
            faults.append("a value ran as a command")


async def _substitute(queue: HttpQueue, value: str, command: str) -> dict[str, Any]:
    """Produces the value in one step, and uses it in the next one. Long values come from a command."""
    if len(value) <= 40_000:
        source = await queue.add({"kind": "external", "name": "source", "on_failure": "continue"})
        await queue.wait_for_action(source)
        await queue.submit_result(source, {"status": "completed", "stdout": value})
    else:
        tail = len(value) - value.index("x" * 1000)
        start = value[:-tail].replace("'", "'\\''")
        text = f"printf %s '{start}'; head -c {tail} /dev/zero | tr '\\0' x"
        source = await queue.add({"kind": "shell", "name": "source", "command": text, "on_failure": "continue"})
    await queue.wait_for(source, "completed", "failed")
    return await queue.wait_for(
        await queue.add({"kind": "shell", "command": command, "on_failure": "continue"}), "completed", "failed"
    )


def _judge(step: dict[str, Any], value: str, tallies: Counter[str], faults: list[str]) -> None:
    result = step["result"]
    if step["state"] == "failed" and result["exit_code"] is None:
        tallies["refused"] += 1
        return
    try:
        arguments = json.loads(result["stdout"])
    except ValueError:
        arguments = None if len(value) < 10_000 else json.loads(f'["{value}"]') if result["exit_code"] == 0 else None
    if arguments is not None and value in arguments and len(arguments) == (3 if "first" in arguments else 1):
        tallies["arrived"] += 1
    else:
        faults.append(f"{value[:60]!r} became {str(result['stdout'])[:120]!r} ({result['error_message']})")
