"""The unit tests take less than 60 seconds, and none of them starts a process or a server.

They run in a fresh clone. Then two tests that do start one are added: both have to fail for that reason.
"""

import os
import re
import sys
from typing import Final

from bench.ci.fresh_clone import fresh_clone, run
from bench.prove.figure import Figure, require, time_limit

_LIMIT: Final = 60.0
_FORBIDDEN_TESTS: Final = """
import socket
import subprocess


def test_process() -> None:
    subprocess.run(["true"], check=True)


def test_server() -> None:
    socket.create_server(("127.0.0.1", 0)).close()
"""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    pytest = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
    async with fresh_clone() as clone:
        environment = {**os.environ, "PYTHONPATH": f"{clone / 'src'}:{clone}"}
        ended = await run(*pytest, "tests/unit", directory=clone, environment=environment)
        require(holds=ended.exit_code == 0, otherwise=f"the unit tests failed:\n{ended.tail}")
        planted_file = clone / "tests" / "unit" / "test_planted.py"
        planted_file.write_text(_FORBIDDEN_TESTS)
        forbidden = await run(*pytest, str(planted_file), directory=clone, environment=environment)
    expected = ("starts a process (subprocess.Popen)", "starts a server at", "2 failed")
    missing = [message for message in expected if message not in forbidden.output]
    require(holds=not missing, otherwise=f"a unit test can start a process or a server:\n{forbidden.tail}")
    passed = int(counted[1]) if (counted := re.search(r"(\d+) passed", ended.output)) else 0
    return Figure(
        headline=f"{passed:,} tests in {ended.seconds:.0f} s; starting a process or server fails",
        summary=f"{ended.output.strip().splitlines()[-1]}, {ended.seconds:.0f} s with start and collection (limit "
        f"{_LIMIT:.0f}); a test that starts a process and one that starts a server fail",
        holds=ended.seconds < time_limit(_LIMIT, quick=quick),
        details={"seconds": round(ended.seconds, 1)},
    )
