"""Forks a session of thirty events at each of them, continues there, and compares the model's request with the log."""

import asyncio
from typing import Any, Final, cast

from bench.prove.figure import NotHeld, require
from bench.support.claude.stories import named
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from bench.support.forks.told import BREAK, expected, joined, told
from footplate.domain import events as ev
from footplate.testing import replies, reply, text, tool

EVENTS: Final = 30
_STORY: Final = "story"
_AFTER: Final = "after"
_TRIES: Final = 3
"""How often to try. If the machine stalls for seconds, a turn may run twice, and the log has more events."""


async def install(cluster: Cluster, harness: str) -> None:
    bash = named(harness)("bash")
    one, two, three = (tool(bash, {"command": f"echo {number}"}) for number in ("one", "two", "three"))
    story = f"{_STORY}-{harness}"
    await cluster.model.install(story, replies([text("Two things."), one, two], [text("Both done.")]))
    await cluster.model.install(f"{story}-more", replies([three], [text("Third.")]))
    await cluster.model.install(f"{story}-end", replies([text("That is all.")]))
    await cluster.model.install(_AFTER, replies(reply(text("Gone on."), repeat=True)))


async def tell(client: Client, harness: str) -> tuple[str, list[Event]]:
    """Creates a session of thirty events: parallel calls, a call without text, and a change of its title."""
    agent = await client.agent(extra_body={"harness": harness})
    for _ in range(_TRIES):
        session_id = await client.session(agent)
        log = await _told(client, session_id, f"{_STORY}-{harness}")
        if await _taken_up_once(client, session_id):
            require(holds=len(log) == EVENTS, otherwise=f"{len(log)} events: {[event['type'] for event in log]}")
            return session_id, log
    raise NotHeld(f"{_TRIES} sessions in a row had a turn that ran twice: this machine is too busy")


async def _told(client: Client, session_id: str, story: str) -> list[Event]:
    await client.run_turn(session_id, f"Do two things. [[script:{story}]]")
    await client.run_turn(session_id, f"And a third. [[script:{story}-more]]")
    await client.sdk.beta.sessions.update(session_id, title="Thirty")
    await client.run_turn(session_id, f"Anything else? [[script:{story}-end]]")
    return await client.events(session_id)


async def _taken_up_once(client: Client, session_id: str) -> bool:
    return all(turn["attempt"] == 1 for turn in await client.turns(session_id))


async def forked_at_each(cluster: Cluster, client: Client, harness: str, *, every: int) -> int:
    """Returns the number of forks, including forks of forks."""
    await install(cluster, harness)
    parent, log = await tell(client, harness)
    places = [*range(0, len(log), every)]
    forks = [await _fork(client, parent, log, at) for at in places]
    again = [await _fork(client, forks[-1][0], log, at) for at in places[::3]]
    requests = await cluster.model.requests(_AFTER)
    heard = {_number(request): request for request in requests}
    for fork_id, at, prompt in [*forks, *again]:
        request: Any = heard[prompt]
        want = joined([*expected(log, at), ("user", prompt)])
        found = joined(told(request["body"]["messages"]))
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


def _number(request: Any) -> str:
    """Returns the prompt at the end of a request."""
    return told(request["body"]["messages"])[-1][1].rpartition(BREAK)[2]
