"""Installs a separate package with a harness and a toolset, and runs turns with its harness; no code of Footplate
mentions the package.

The package is built and installed offline in its own directory, which is added to the path of the API and the workers.
Its entry points are the only connection to Footplate.
"""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Final

from bench.prove.figure import require
from bench.support.clients import Client, texts
from bench.support.cluster import Cluster
from bench.support.response_validation import ValidationLedger

PACKAGE: Final = Path(__file__).resolve().parents[2] / "tests" / "acceptance" / "echo_demo"
HARNESS: Final = "echo_demo"


async def install_package(target: Path) -> None:
    """Installs the package from a copy, so that the build leaves no files in the source tree."""
    copy = target.with_suffix(".source")
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    uv = shutil.which("uv")
    require(holds=uv is not None, otherwise="uv is needed to install the package: `.ci/run` provides it")
    process = await asyncio.create_subprocess_exec(
        *(str(uv), "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"),
        *("--python", sys.executable, "--target", str(target), str(copy)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(Path.home())},
    )
    output, _ = await process.communicate()
    require(holds=process.returncode == 0, otherwise=f"the package cannot be installed: {output.decode()}")


def path_variables(target: Path) -> dict[str, str]:
    """Returns the environment variables with which a cluster's processes find the installed package."""
    return {"PYTHONPATH": str(target)}


async def run_turns(cluster: Cluster, ledger: ValidationLedger) -> None:
    async with Client(cluster, ledger=ledger) as client:
        agent_id = await client.agent(extra_body={"harness": HARNESS})
        session_id = await client.session(agent_id)
        for number, text in enumerate(("one", "two", "three"), start=1):
            received = await client.run_turn(session_id, text)
            responses = texts(received)
            require(holds=responses == [f"{number}: {text}"], otherwise=f"the harness responded with {responses}")
            stop = received[-1]["stop_reason"]
            require(holds=stop == {"type": "end_turn"}, otherwise=f"the turn ended with {stop}")
    requests = await cluster.model.requests()
    require(holds=not requests, otherwise="a harness without a model made a model request")
