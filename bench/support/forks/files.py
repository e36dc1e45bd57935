"""Forks a session that creates twenty files at each of its events, and compares the files of each fork with the log.

Each call of the session ends by listing all files with their hashes. A fork at an event must have the files that the
last result up to that event lists.
"""

import time
from dataclasses import dataclass, field
from typing import Any, Final

from bench.prove.figure import require
from bench.support.claude.stories import named
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from bench.support.forks.told import expected, joined, told
from footplate.domain import events as ev
from footplate.testing import replies, reply, text, tool

FILES: Final = 20
CALLS: Final = 6
_TELL: Final = (
    "echo All files:; find . -path ./.git -prune -o \\( -type f -o -type l \\) -print0 | sort -z | xargs -0r sha1sum"
)
_LOOK: Final = "look"
_PATIENCE: Final = 120.0


async def install(cluster: Cluster, harness: str) -> None:
    bash = named(harness)("bash")
    calls = [reply(text(f"Step {n}."), tool(bash, {"command": f"{_change(n)}; {_TELL}"})) for n in range(CALLS)]
    middle = CALLS // 2
    await cluster.model.install(f"files-{harness}", replies(*calls[:middle], [text("Half of it.")]))
    await cluster.model.install(f"files-{harness}-more", replies(*calls[middle:], [text("All of it.")]))
    await cluster.model.install(f"{_LOOK}-{harness}", replies([tool(bash, {"command": _TELL})], [text("Seen.")]))
    change = tool(bash, {"command": "echo $RANDOM >> changed; echo $RANDOM > last"})
    await cluster.model.install(f"grow-{harness}", replies([change], reply(text("Grown."), repeat=True)))


def _change(number: int) -> str:
    """Returns a command that adds, extends, removes, moves and links files, and makes one executable."""
    each = -(-FILES // CALLS)
    made = "; ".join(f"echo {number} > file-{number * each + n}" for n in range(each))
    return (
        f"{made}; echo {number} >> grows; rm -f file-{number * each - 1}; mv grows grows-{number} && "
        f"cp grows-{number} grows; chmod +x file-{number * each}; ln -sf file-{number * each} link"
    )


@dataclass(slots=True)
class Forked:
    forks: int = 0
    faults: list[str] = field(default_factory=list)


async def forked_at_each(cluster: Cluster, client: Client, harness: str, fields: dict[str, Any], every: int) -> Forked:
    agent = await client.agent(extra_body={"harness": harness})
    parent = await client.session(agent, **fields)
    await client.run_turn(parent, f"Begin. [[script:files-{harness}]]", patience=_PATIENCE)
    await client.run_turn(parent, f"And the rest. [[script:files-{harness}-more]]", patience=_PATIENCE)
    log = await client.events(parent)
    found = Forked()
    plain = await client.session(agent, **fields)
    began = _listed(await client.run_turn(plain, f"[[script:{_LOOK}-{harness}]]", patience=_PATIENCE))
    for at in range(0, len(log), every):
        fork_id, prompt, seen = await _look(client, parent, log[at]["id"], harness)
        found.forks += 1
        where = f"{harness}, {log[at]['type']} ({at + 1} of {len(log)})"
        if seen != (wanted := _wanted(log, at) or began):
            found.faults.append(f"{where}: {seen!r} instead of {wanted!r}")
        requests: list[Any] = [*await cluster.model.requests(f"{_LOOK}-{harness}")]
        heard = next(each for each in requests if fork_id in str(each["body"]["messages"][-1]))
        said = joined(told(heard["body"]["messages"]))
        if said != joined([*expected(log, at), ("user", prompt)]):
            found.faults.append(f"{where}: the model received {said[-3:]}")
    require(holds=await client.events(parent) == log, otherwise="the parent was changed")
    return found


async def _look(client: Client, parent: str, event_id: str, harness: str) -> tuple[str, str, str]:
    path = f"/v1/sessions/{parent}/fork"
    fork: Any = await client.sdk.post(path, cast_to=dict[str, Any], body={"at_event_id": event_id})
    prompt = f"Look around. [[script:{_LOOK}-{harness}]] {fork['id']}"
    return fork["id"], prompt, _listed(await client.run_turn(fork["id"], prompt, patience=_PATIENCE))


def _wanted(log: list[Event], at: int) -> str:
    return _listed(log[: at + 1])


def _listed(events: list[Event]) -> str:
    results = [event for event in events if event["type"] == ev.AGENT_TOOL_RESULT]
    return "".join(block.get("text", "") for block in results[-1]["content"]).strip() if results else ""


async def grown(client: Client, harness: str, turns: int) -> str:
    """Creates a session that changed a file in each of its turns."""
    agent = await client.agent(extra_body={"harness": harness})
    session_id = await client.session(agent)
    for _ in range(turns):
        await client.run_turn(session_id, f"Go on. [[script:grow-{harness}]]", patience=_PATIENCE)
    return session_id


async def first_looks(client: Client, parent: str, harness: str, count: int) -> list[float]:
    """Returns the seconds of a fork and its first turn, in which it lists its files."""
    event_id = (await client.events(parent))[-1]["id"]
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await _look(client, parent, event_id, harness)
        times.append(time.perf_counter() - began)
    return times
