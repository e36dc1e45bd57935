"""Kill the API at any time of a POST: with the SDK's own retries nothing acknowledged is lost or created twice.

The requests are messages, sessions with a first message, and agents, sent by the official SDK with its default retries;
some are sent twice on purpose. Each acknowledged POST created one resource, and only its caller received the id. A POST
that the SDK gave up on created at most one. Each message in the log was processed once, by one turn, and reached the
model once.
"""

import random
import secrets
from collections import Counter
from typing import Final

from bench.prove.figure import Figure
from bench.support.cluster import open_cluster
from bench.support.crash.findings import print_histogram
from bench.support.retries.api_kills import TENTHS, ApiKills
from bench.support.retries.balancer import Balancer
from bench.support.retries.post_outcomes import check_outcomes, count_kill_states
from bench.support.retries.sdk_posts import KINDS, SCRIPT, Caller
from footplate.testing import replies, reply, text

# The sweep soon finds messages for which a killed API could not wake the session.
_SETTINGS: Final = {"FOOTPLATE_SWEEP_INTERVAL": "2"}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    replicas, at_random_times, before_responses = (2, 5, 2) if quick else (3, 200, 40)
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    async with (
        open_cluster(apis=replicas, workers=1, environment=_SETTINGS) as cluster,
        Balancer() as balancer,
        Caller(cluster, balancer) as caller,
        Caller(cluster, balancer, await cluster.create_key("default", name="stranger")) as stranger,
        Caller(cluster, balancer) as twin,
    ):
        await cluster.model.install(SCRIPT, replies(reply(text("Yes."), repeat=True)))
        balancer.turn_to(*cluster.ports)
        seat = await caller.create_shared_objects()
        killing = ApiKills(cluster, balancer, caller, stranger, twin, seat, random.Random(seed))
        await killing.measure()
        await killing.kill_anywhere(at_random_times)
        await killing.kill_before_responses(before_responses)
        await killing.aclose()
        faults, messages = await check_outcomes(cluster, killing.posted)
        found = await count_kill_states(cluster, killing.kills)
    print_histogram(
        "times of the kills, in tenths of the POST's duration",
        Counter({label: killing.tenths[label] for label in (f"{n}/{TENTHS}" for n in range(TENTHS))}),
    )
    print_histogram("state of the POST at the kill", found)
    return _figure(killing, faults, messages, found)


def _figure(killing: ApiKills, faults: list[str], messages: int, found: Counter[str]) -> Figure:
    posts = [post for kill in killing.kills for post in kill.posted]
    usual_times = ", ".join(f"{kind} {killing.usual_seconds(kind) * 1000:.0f} ms" for kind in KINDS)
    random_kills = sum(killing.tenths.values())
    acknowledged = sum(post.id is not None for post in posts)
    headline = (
        f"{len(killing.kills)} kills during {len(posts)} POSTs: {acknowledged} acknowledged, none lost, none made twice"
    )
    summary = (
        f"{len(killing.kills)} SIGKILLs of the API during a POST ({random_kills} at random times of {usual_times}; "
        f"{len(killing.kills) - random_kills} between commit and response) affected {len(posts)} POSTs: "
        f"{', '.join(f'{count} {state}' for state, count in found.items())}; {acknowledged} acknowledged, none of them "
        f"lost, nothing created twice; {messages} messages processed once each"
    )
    if faults:
        headline = f"{len(killing.kills)} kills during {len(posts)} POSTs: {len(faults)} faults"
        summary = f"{len(faults)} faults, the first: {faults[0]}"
    return Figure(
        headline=headline,
        summary=summary,
        holds=not faults,
        details={"faults": list(faults), "states": dict(found), "tenths": dict(sorted(killing.tenths.items()))},
    )
