"""Every backend runs in CI, from Debian's packages and an image made from scratch; where one cannot, nobody pretends.

The tests of the environments run with every backend, and none of them may be skipped. Then workers are started on
machines that lack what their boundary needs: each says what is missing and ends, and the turn that waits meanwhile runs
on the first worker that can.
"""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure, require
from bench.support import backends, suite
from bench.support.bare_machine import refusals
from bench.support.clients import Client, texts
from bench.support.cluster import open_cluster
from footplate.testing import replies, text, tool

ROOT: Final = Path(__file__).resolve().parents[3]
_TESTS: Final = "tests/integration/environments"
_CI_NEEDS: Final = ("bwrap:bubblewrap", "dockerd:docker.io", "FOOTPLATE_TESTS_NEED_DOCKER=1")


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    ci = await asyncio.to_thread((ROOT / ".ci" / "run").read_text)
    missing = [words for words in _CI_NEEDS if words not in ci]
    require(holds=not missing, otherwise=f".ci/run does not have {missing}")
    counts = Counter[str]() if quick else await _tests()
    refused = await _refusals()
    ran = ", ".join(f"{number} in {name}" for name, number in counts.items())
    shown = f"tests of the environments: {ran}, all passed and none skipped" if ran else "the tests run in CI's lanes"
    return Figure(
        text=f"{shown}; a worker without {', '.join(refused)} says so and takes no turn",
        holds=quick or set(counts) >= set(backends.known()),
        details={"tests": dict(counts), "refused": [*refused]},
    )


async def _tests() -> Counter[str]:
    """How many tests ran in which backend."""
    names = await suite.ran(_TESTS, FOOTPLATE_TESTS_NEED_DOCKER="1")
    parameters = [set(re.findall(r"\w+", name.partition("[")[2])) for name in names]
    return Counter(name for name in backends.known() for found in parameters if name in found)


async def _refusals() -> list[str]:
    """The machines, by what they lack. A message waits while workers come and go that cannot take it."""
    async with open_cluster(workers=0) as cluster, Client(cluster) as client:
        await cluster.model.install("waiting", replies([tool("bash", {"command": "echo here"})], [text("Done.")]))
        session_id = await client.session()
        await client.send_text(session_id, "[[script:waiting]]")
        await refusals.try_all(cluster)
        asked = await cluster.model.requests()
        require(holds=not asked, otherwise="a worker that cannot give its boundary ran a turn")
        async with client.stream(session_id) as stream:
            await cluster.add_worker()
            said = texts(await stream.until_idle())
        require(holds=said == ["Done."], otherwise=f"the turn that waited said {said}")
    return [machine.lacks for machine in refusals.MACHINES]
