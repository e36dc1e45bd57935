"""Installs a package from outside of this tree, and lets its harness run turns: nothing of Footplate knows its name.

The package is built and put into a directory of its own, without network, and that directory onto the path of api
and workers; the entry point that it declares is all that connects the two.
"""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Final

from bench.prove.figure import require
from bench.support.checking import Ledger
from bench.support.clients import Client, texts
from bench.support.cluster import Cluster

PACKAGE: Final = Path(__file__).resolve().parents[2] / "tests" / "acceptance" / "echo_demo"
HARNESS: Final = "echo_demo"


async def install(target: Path) -> None:
    """From a copy: a build leaves nothing in the tree."""
    copy = target.with_suffix(".source")
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    uv = shutil.which("uv")
    require(holds=uv is not None, otherwise="uv is needed to install the package: `.ci/run` brings one along")
    process = await asyncio.create_subprocess_exec(
        *(str(uv), "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"),
        *("--python", sys.executable, "--target", str(target), str(copy)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(Path.home())},
    )
    output, _ = await process.communicate()
    require(holds=process.returncode == 0, otherwise=f"the package cannot be installed: {output.decode()}")


def environment(target: Path) -> dict[str, str]:
    """For a cluster whose processes find what was installed there."""
    return {"PYTHONPATH": str(target)}


async def run_turns(cluster: Cluster, ledger: Ledger) -> None:
    async with Client(cluster, ledger=ledger) as client:
        agent_id = await client.agent(extra_body={"harness": HARNESS})
        session_id = await client.session(agent_id)
        for number, word in enumerate(("one", "two", "three"), start=1):
            received = await client.run_turn(session_id, word)
            said = texts(received)
            require(holds=said == [f"{number}: {word}"], otherwise=f"the harness said {said}")
            stop = received[-1]["stop_reason"]
            require(holds=stop == {"type": "end_turn"}, otherwise=f"the turn ended with {stop}")
    asked = await cluster.model.requests()
    require(holds=not asked, otherwise="a harness without a model asked one")
