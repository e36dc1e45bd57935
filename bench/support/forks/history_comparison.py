"""Forks a session of thirty events at each of them, continues there, and compares the model's request with the log."""

import asyncio
from typing import Any, Final, cast

from bench.prove.figure import NotHeld, require
from bench.support.claude.scenarios import tool_namer
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from bench.support.forks.conversations import BREAK, expected_conversation, join_user_messages, read_conversation
from footplate.domain.sessions import events as ev
from footplate.testing import replies, reply, text, tool

EVENTS: Final = 30
_SCRIPT: Final = "story"
_AFTER: Final = "after"
_TRIES: Final = 3
"""How often to try. If the machine stalls for seconds, a turn may run twice, and the log has more events."""


async def install_scripts(cluster: Cluster, harness: str) -> None:
    bash = tool_namer(harness)("bash")
    one, two, three = (tool(bash, {"command": f"echo {number}"}) for number in ("one", "two", "three"))
    script = f"{_SCRIPT}-{harness}"
    await cluster.model.install(script, replies([text("Two things."), one, two], [text("Both done.")]))
    await cluster.model.install(f"{script}-more", replies([three], [text("Third.")]))
    await cluster.model.install(f"{script}-end", replies([text("That is all.")]))
    await cluster.model.install(_AFTER, replies(reply(text("Gone on."), repeat=True)))


async def create_session(client: Client, harness: str) -> tuple[str, list[Event]]:
    """Creates a session of thirty events: parallel calls, a call without text, and a change of its title."""
    agent = await client.agent(extra_body={"harness": harness})
    for _ in range(_TRIES):
        session_id = await client.session(agent)
        log = await _run_turns(client, session_id, f"{_SCRIPT}-{harness}")
        if await _ran_once(client, session_id):
            require(holds=len(log) == EVENTS, otherwise=f"{len(log)} events: {[event['type'] for event in log]}")
            return session_id, log
    raise NotHeld(f"{_TRIES} sessions in a row had a turn that ran twice: this machine is too busy")


async def _run_turns(client: Client, session_id: str, script: str) -> list[Event]:
    await client.run_turn(session_id, f"Do two things. [[script:{script}]]")
    await client.run_turn(session_id, f"And a third. [[script:{script}-more]]")
    await client.sdk.beta.sessions.update(session_id, title="Thirty")
    await client.run_turn(session_id, f"Anything else? [[script:{script}-end]]")
    return await client.events(session_id)


async def _ran_once(client: Client, session_id: str) -> bool:
    return all(turn["attempt"] == 1 for turn in await client.list_turns(session_id))


async def fork_at_each_event(cluster: Cluster, client: Client, harness: str, *, every: int) -> int:
    """Returns the number of forks, including forks of forks."""
    await install_scripts(cluster, harness)
    parent, log = await create_session(client, harness)
    places = [*range(0, len(log), every)]
    forks = [await _fork(client, parent, log, at) for at in places]
    again = [await _fork(client, forks[-1][0], log, at) for at in places[::3]]
    requests = await cluster.model.requests(_AFTER)
    requests_by_prompt = {_read_prompt(request): request for request in requests}
    for fork_id, at, prompt in [*forks, *again]:
        request: Any = requests_by_prompt[prompt]
        want = join_user_messages([*expected_conversation(log, at), ("user", prompt)])
        found = join_user_messages(read_conversation(request["body"]["messages"]))
        where = f"{harness}, forked at event {at + 1} ({log[at]['type']})"
        require(holds=found == want, otherwise=f"{where}: the model received {found}, not {want}")
        own = await client.events(fork_id)
        require(holds=own[: at + 1] == log[: at + 1], otherwise=f"{where}: the fork's log begins differently")
        require(holds=own[at + 1]["type"] == ev.STATUS_IDLE, otherwise=f"{where}: then comes {own[at + 1]}")
    require(holds=await client.events(parent) == log, otherwise="the parent was changed")
    return len(forks) + len(again)


async def _fork(client: Client, parent: str, log: list[Event], at: int) -> tuple[str, int, str]:
    body = {"at_event_id": log[at]["id"]}
    fork = await client.sdk.post(f"/v1/sessions/{parent}/fork", cast_to=cast("Any", object), body=body)
    prompt = f"Go on from {at}. [[script:{_AFTER}]] {fork['id']}"
    async with asyncio.timeout(60):
        await client.run_turn(fork["id"], prompt)
    return fork["id"], at, prompt


def _read_prompt(request: Any) -> str:
    """Returns the prompt at the end of a request."""
    return read_conversation(request["body"]["messages"])[-1][1].rpartition(BREAK)[2]
