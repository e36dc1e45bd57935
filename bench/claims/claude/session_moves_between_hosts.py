"""A session can move between hosts at every turn: the model sees one unbroken history."""

from typing import Final

from bench.prove.figure import Figure
from bench.support.claude.request_conversation import read_conversation
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.worker_hosts import create_worker_host
from footplate.testing import replies, text, tool

_SCRIPT: Final = "hand-back"
_FULL, _QUICK = 20, 2


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    turns = _QUICK if quick else _FULL
    faults: list[str] = []
    async with open_cluster(workers=0) as cluster, Client(cluster) as client:
        call = tool("Bash", {"command": "pwd; echo $HOME; echo $CLAUDE_CONFIG_DIR"})
        await cluster.model.install(_SCRIPT, replies([call], [text("Answer {n}.")]))
        hosts = [create_worker_host(cluster, "a", "sandbox"), create_worker_host(cluster, "b", "unsandboxed")]
        session_id = await client.session(await client.agent(extra_body={"harness": "claude"}))
        tool_outputs = set()
        expected: list[tuple[str, str]] = []
        for number in range(turns):
            current_host = hosts[number % 2]
            await current_host.start()
            try:
                prompt = f"This is message {number}. [[script:{_SCRIPT}]]"
                events = await client.run_turn(session_id, prompt)
            finally:
                await current_host.stop()
            expected.append(("user", prompt))
            seen_by_model = read_conversation((await cluster.model.requests(_SCRIPT))[-1])
            if seen_by_model != expected:
                faults.append(f"turn {number}: the model saw {seen_by_model[-4:]}, not {expected[-4:]}")
            expected.append(("assistant", "Answer 1."))
            tool_outputs |= {
                block["text"] for event in events if event["type"] == "agent.tool_result" for block in event["content"]
            }
        if len({place.partition("\n")[0] for place in tool_outputs}) != len(hosts):
            faults.append(f"the hosts do not differ: {tool_outputs}")
    unbroken = f"one unbroken history {turns - len(faults)} times"
    headline = f"{turns} turns alternated between two hosts: {unbroken}"
    summary = (
        f"{turns} turns alternated between two workers with different HOME, configuration and working directory: the "
        f"model saw {unbroken}"
    )
    if faults:
        headline, summary = f"{turns} turns alternated between two hosts: {len(faults)} faults", faults[0]
    for fault in faults:
        print(f"  FAULT {fault}", flush=True)
    return Figure(headline=headline, summary=summary, holds=not faults, details={"faults": [*faults]})
