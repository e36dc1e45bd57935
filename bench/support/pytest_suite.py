"""Runs pytest as part of a claim: all tests must pass, and none may be skipped."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from bench.prove.figure import require

_ROOT: Final = Path(__file__).resolve().parents[2]


async def run_tests(*paths: str, **environment: str) -> list[str]:
    """Runs the tests and returns their names, with parameters."""
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        report = Path(directory, "report.xml")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *paths),
            cwd=_ROOT,
            env={"PATH": os.environ["PATH"], "HOME": directory, **environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode(errors="replace")
        require(holds=process.returncode == 0, otherwise=f"the tests failed:\n{output[-3000:]}")
        cases = list(ET.parse(report).iter("testcase"))
    skipped = [str(case.get("name")) for case in cases if case.find("skipped") is not None]
    require(holds=bool(cases) and not skipped, otherwise=f"tests were skipped: {skipped}")
    return [str(case.get("name")) for case in cases]
