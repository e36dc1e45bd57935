"""However a command hides or ends, no process, cgroup, container, namespace, socket or directory of it remains."""

import math
from typing import Final

from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.orphan_search import lingering_commands, planted_orphans
from bench.support.orphan_search.resource_search import OrphanSearch
from bench.support.orphan_search.turn_endings import CLEANUP_LIMIT_SECONDS, ENDINGS, EndingTally, TestBed
from footplate.domain.json import JsonObject

_SETTINGS: Final = {"FOOTPLATE_HEARTBEAT_TIMEOUT": "4", "FOOTPLATE_LEASE": "2", "FOOTPLATE_RETRY_WAIT": "0.2"}
_CONCURRENT_COMMANDS: Final = 10
_MIN_COMMANDS: Final = 500
"""At least this many in all backends together."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    summaries: list[str] = []
    leftovers: list[str] = []
    commands_run = 0
    details: JsonObject = {}
    present = environment_backends.available_backends()[: 1 if quick else None]
    rounds = 1 if quick else math.ceil(_MIN_COMMANDS / (len(present) * len(ENDINGS) * _CONCURRENT_COMMANDS))
    for backend in present:
        tallies, kinds = await _run_backend(backend, rounds=rounds, at_once=2 if quick else _CONCURRENT_COMMANDS)
        found = [thing for tally in tallies.values() for thing in tally.orphans]
        leftovers += found
        commands_run = sum(tally.commands for tally in tallies.values())
        summaries.append(_summary(backend, tallies, kinds, found))
        details[backend] = {
            way: {"slowest": tally.slowest, "left": list(tally.orphans)} for way, tally in tallies.items()
        }
    absent = sorted(set(environment_backends.list_backends()) - set(environment_backends.available_backends()))
    if absent:
        summaries.append(f"not available on this machine: {', '.join(absent)}")
    headline = f"{commands_run} commands per backend: nothing remained after {CLEANUP_LIMIT_SECONDS:.0f} s"
    if leftovers:
        headline = f"{len(leftovers)} processes or resources remained after {CLEANUP_LIMIT_SECONDS:.0f} s"
    return Figure(headline=headline, summary="; ".join(summaries), holds=not leftovers, details=details)


async def _run_backend(backend: str, *, rounds: int, at_once: int) -> tuple[dict[str, EndingTally], list[str]]:
    async with (
        environment_backends.backend_settings(backend) as settings,
        open_cluster(apis=1, workers=1, environment={**_SETTINGS, **settings}) as cluster,
        Client(cluster) as client,
    ):
        mark = lingering_commands.process_marker(cluster)
        for name, script in lingering_commands.scripts(mark).items():
            await cluster.model.install(name, script)
        engine = settings.get("FOOTPLATE_DOCKER_HOST", "")
        site = TestBed(cluster, client, await client.agent(), OrphanSearch(cluster, mark, engine=engine))
        kinds = await planted_orphans.find_planted_orphans(site)
        for way in ENDINGS:
            for _ in range(rounds):
                await site.run_round(way, at_once)
            tally = site.tallies[way]
            print(
                f"  {backend}: {tally.commands} by {way}, gone after {tally.slowest:.2f} s {tally.last_gone}",
                flush=True,
            )
    return site.tallies, kinds


def _summary(backend: str, tallies: dict[str, EndingTally], kinds: list[str], leftovers: list[str]) -> str:
    if leftovers:
        return f"{backend}: {len(leftovers)} leftovers, the first: {leftovers[0]}"
    count, seen = (
        sum(tally.commands for tally in tallies.values()),
        sum(tally.processes_before for tally in tallies.values()),
    )
    slowest = ", ".join(f"{way} {tally.slowest:.1f} s" for way, tally in tallies.items())
    return (
        f"{backend}: {count} commands ({seen} processes), nothing remained after "
        f"{CLEANUP_LIMIT_SECONDS:.0f} s; the first search that "
        f"found nothing began after: {slowest}; the search found the planted {', '.join(kinds)}"
    )
