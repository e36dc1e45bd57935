"""CI tests every backend without skipping, and a worker whose machine cannot provide its backend refuses to start.

CI installs Debian's packages and builds the image from scratch. The environment tests run with every backend. Then
workers are started on machines that lack a requirement of their backend: each reports what is missing and exits. A
turn that waits meanwhile runs on the first suitable worker.
"""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure, require
from bench.support import environment_backends, pytest_suite
from bench.support.bare_machine import worker_refusals
from bench.support.clients import Client, texts
from bench.support.cluster import open_cluster
from footplate.testing import replies, text, tool

ROOT: Final = Path(__file__).resolve().parents[3]
_TESTS: Final = "tests/integration/environments"
_CI_SETTINGS: Final = ("bwrap:bubblewrap", "dockerd:docker.io", "FOOTPLATE_TESTS_NEED_DOCKER=1")


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    ci = await asyncio.to_thread((ROOT / ".ci" / "run").read_text)
    missing = [setting for setting in _CI_SETTINGS if setting not in ci]
    require(holds=not missing, otherwise=f".ci/run does not contain {missing}")
    test_counts = Counter[str]() if quick else await _count_tests()
    refused = await _check_refusals()
    ran = ", ".join(f"{number} in {name}" for name, number in test_counts.items())
    tested = f"environment tests: {ran}, all passed and none skipped" if ran else "the tests run in CI's lanes"
    headline = f"{test_counts.total()} tests on {len(test_counts)} backends passed, none skipped"
    if quick:
        headline = f"workers refuse to start on {len(refused)} unsuitable machines"
    elif set(test_counts) < set(environment_backends.list_backends()):
        headline = f"tests ran on only {len(test_counts)} of {len(environment_backends.list_backends())} backends"
    return Figure(
        headline=headline,
        summary=f"{tested}; a worker without {', '.join(refused)} reports it and claims no turn",
        holds=quick or set(test_counts) >= set(environment_backends.list_backends()),
        details={"tests": dict(test_counts), "refused": [*refused]},
    )


async def _count_tests() -> Counter[str]:
    """Runs the environment tests and counts them by backend."""
    names = await pytest_suite.run_tests(_TESTS, FOOTPLATE_TESTS_NEED_DOCKER="1")
    parameters = [set(re.findall(r"\w+", name.partition("[")[2])) for name in names]
    return Counter(name for name in environment_backends.list_backends() for found in parameters if name in found)


async def _check_refusals() -> list[str]:
    """Starts unsuitable workers while a message waits, then a suitable one; returns what each machine lacked."""
    async with open_cluster(workers=0) as cluster, Client(cluster) as client:
        await cluster.model.install("waiting", replies([tool("bash", {"command": "echo here"})], [text("Done.")]))
        session_id = await client.session()
        await client.send_text(session_id, "[[script:waiting]]")
        await worker_refusals.check_all_machines(cluster)
        requests = await cluster.model.requests()
        require(holds=not requests, otherwise="a worker that cannot provide its backend ran a turn")
        async with client.stream(session_id) as stream:
            await cluster.add_worker()
            messages = texts(await stream.until_idle())
        require(holds=messages == ["Done."], otherwise=f"the waiting turn produced {messages}")
    return [machine.lacks for machine in worker_refusals.MACHINES]
