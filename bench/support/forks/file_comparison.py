"""Forks a session that creates twenty files at each of its events, and compares the files of each fork with the log.

Each call of the session ends by listing all files with their hashes. A fork at an event must have the files that the
last result up to that event lists.
"""

import time
from dataclasses import dataclass, field
from typing import Any, Final

from bench.prove.figure import require
from bench.support.claude.scenarios import tool_namer
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from bench.support.forks.conversations import expected_conversation, join_user_messages, read_conversation
from footplate.domain.sessions import events as ev
from footplate.testing import replies, reply, text, tool

FILES: Final = 20
CALLS: Final = 6
_LIST_FILES: Final = (
    "echo All files:; find . -path ./.git -prune -o \\( -type f -o -type l \\) -print0 | sort -z | xargs -0r sha1sum"
)
_LIST_SCRIPT: Final = "look"
_PATIENCE: Final = 120.0


async def install_scripts(cluster: Cluster, harness: str) -> None:
    bash = tool_namer(harness)("bash")
    calls = [reply(text(f"Step {n}."), tool(bash, {"command": f"{_change(n)}; {_LIST_FILES}"})) for n in range(CALLS)]
    middle = CALLS // 2
    await cluster.model.install(f"files-{harness}", replies(*calls[:middle], [text("Half of it.")]))
    await cluster.model.install(f"files-{harness}-more", replies(*calls[middle:], [text("All of it.")]))
    await cluster.model.install(
        f"{_LIST_SCRIPT}-{harness}", replies([tool(bash, {"command": _LIST_FILES})], [text("Seen.")])
    )
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
class ForkFindings:
    forks: int = 0
    faults: list[str] = field(default_factory=list)


async def fork_at_each_event(
    cluster: Cluster, client: Client, harness: str, fields: dict[str, Any], every: int
) -> ForkFindings:
    agent = await client.agent(extra_body={"harness": harness})
    parent = await client.session(agent, **fields)
    await client.run_turn(parent, f"Begin. [[script:files-{harness}]]", patience=_PATIENCE)
    await client.run_turn(parent, f"And the rest. [[script:files-{harness}-more]]", patience=_PATIENCE)
    log = await client.events(parent)
    found = ForkFindings()
    plain = await client.session(agent, **fields)
    began = _last_listing(await client.run_turn(plain, f"[[script:{_LIST_SCRIPT}-{harness}]]", patience=_PATIENCE))
    for at in range(0, len(log), every):
        fork_id, prompt, seen = await _fork_and_list(client, parent, log[at]["id"], harness)
        found.forks += 1
        where = f"{harness}, {log[at]['type']} ({at + 1} of {len(log)})"
        if seen != (wanted := _expected_files(log, at) or began):
            found.faults.append(f"{where}: {seen!r} instead of {wanted!r}")
        requests: list[Any] = [*await cluster.model.requests(f"{_LIST_SCRIPT}-{harness}")]
        request = next(each for each in requests if fork_id in str(each["body"]["messages"][-1]))
        conversation = join_user_messages(read_conversation(request["body"]["messages"]))
        if conversation != join_user_messages([*expected_conversation(log, at), ("user", prompt)]):
            found.faults.append(f"{where}: the model received {conversation[-3:]}")
    require(holds=await client.events(parent) == log, otherwise="the parent was changed")
    return found


async def _fork_and_list(client: Client, parent: str, event_id: str, harness: str) -> tuple[str, str, str]:
    path = f"/v1/sessions/{parent}/fork"
    fork: Any = await client.sdk.post(path, cast_to=dict[str, Any], body={"at_event_id": event_id})
    prompt = f"Look around. [[script:{_LIST_SCRIPT}-{harness}]] {fork['id']}"
    return fork["id"], prompt, _last_listing(await client.run_turn(fork["id"], prompt, patience=_PATIENCE))


def _expected_files(log: list[Event], at: int) -> str:
    return _last_listing(log[: at + 1])


def _last_listing(events: list[Event]) -> str:
    results = [event for event in events if event["type"] == ev.AGENT_TOOL_RESULT]
    return "".join(block.get("text", "") for block in results[-1]["content"]).strip() if results else ""


async def create_grown_session(client: Client, harness: str, turns: int) -> str:
    """Creates a session that changed a file in each of its turns."""
    agent = await client.agent(extra_body={"harness": harness})
    session_id = await client.session(agent)
    for _ in range(turns):
        await client.run_turn(session_id, f"Go on. [[script:grow-{harness}]]", patience=_PATIENCE)
    return session_id


async def measure_first_turns(client: Client, parent: str, harness: str, count: int) -> list[float]:
    """Returns the seconds of a fork and its first turn, in which it lists its files."""
    event_id = (await client.events(parent))[-1]["id"]
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await _fork_and_list(client, parent, event_id, harness)
        times.append(time.perf_counter() - began)
    return times
