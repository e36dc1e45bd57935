"""Kill the api at any moment of a POST: the SDK's own retries lose nothing acknowledged and make nothing twice.

Sends, sessions with a first message, and agents, by the official SDK with its default retries; also the same said twice
on purpose. Each acknowledged POST made one thing, which only its caller was told of; one that the SDK gave up on made
one at most; each message in the log was taken up once, by one turn, and the model heard it once.
"""

import random
import secrets
from collections import Counter
from typing import Final

from bench.prove.figure import Figure
from bench.support.cluster import open_cluster
from bench.support.crash.findings import histogram
from bench.support.retries.balancer import Balancer
from bench.support.retries.judging import judge, states
from bench.support.retries.killing import TENTHS, Killing
from bench.support.retries.posts import KINDS, SCRIPT, Caller
from footplate.testing import replies, reply, text

# What a killed api committed and could not wake is found soon.
_SETTINGS: Final = {"FOOTPLATE_SWEEP_INTERVAL": "2"}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    replicas, anywhere, before_answers = (2, 5, 2) if quick else (3, 200, 40)
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
        place = await caller.settle()
        killing = Killing(cluster, balancer, caller, stranger, twin, place, random.Random(seed))
        await killing.measure()
        await killing.anywhere(anywhere)
        await killing.before_answers(before_answers)
        await killing.aclose()
        faults, messages = await judge(cluster, killing.posted)
        found = await states(cluster, killing.kills)
    histogram(
        "moments drawn, in tenths of the POST's time",
        Counter({label: killing.tenths[label] for label in (f"{n}/{TENTHS}" for n in range(TENTHS))}),
    )
    histogram("what the kill found", found)
    return _figure(killing, faults, messages, found)


def _figure(killing: Killing, faults: list[str], messages: int, found: Counter[str]) -> Figure:
    posts = [post for kill in killing.kills for post in kill.posted]
    usual = ", ".join(f"{kind} {killing.usual(kind) * 1000:.0f} ms" for kind in KINDS)
    drawn = sum(killing.tenths.values())
    acknowledged = sum(post.id is not None for post in posts)
    text = (
        f"{len(killing.kills)} SIGKILLs of the api in mid-POST ({drawn} uniform over {usual}; "
        f"{len(killing.kills) - drawn} between commit and answer) met {len(posts)} POSTs: "
        f"{', '.join(f'{count} {state}' for state, count in found.items())}; {acknowledged} acknowledged, none of them "
        f"lost, none of all made twice; {messages} messages processed once each"
    )
    if faults:
        text = f"{len(faults)} faults, the first: {faults[0]}"
    return Figure(
        text=text,
        holds=not faults,
        details={"faults": list(faults), "states": dict(found), "tenths": dict(sorted(killing.tenths.items()))},
    )
