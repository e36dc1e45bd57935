"""Every action of the dashboard works in Chromium, and windows stay right when networks and servers fail.

The browser tests run against a real cluster with the scripted model. One of them fails if an action that the dashboard
registers has no test. Others change something in two windows at once, cut the network, and kill an API process while
it streams. A sample runs only these.
"""

import os
import re
import sys
from typing import Final

from bench.ci.fresh_clone import run
from bench.prove.figure import Figure

_SUITE: Final = "tests/browser"
_DISTURBED: Final = (
    "test_session.py::test_a_message_is_in_the_other_window_within_a_second",
    "test_session.py::test_a_cut_network_heals_without_a_reload",
    "test_session.py::test_an_api_that_is_killed_while_it_streams_loses_nothing",
)
_COVERAGE: Final = "test_action_coverage.py"
_COUNT: Final = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (tests/\S+)", re.MULTILINE)
_SECONDS: Final = 3600.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    chosen = [f"{_SUITE}/{name}" for name in (*_DISTURBED, _COVERAGE)] if quick else [_SUITE]
    environment = {**os.environ, "FOOTPLATE_TESTS_NEED_CHROMIUM": "1"}
    ended = await run(sys.executable, "-m", "pytest", *chosen, environment=environment, limit=_SECONDS)
    print(ended.output, flush=True)
    counts = {outcome: int(count) for count, outcome in _COUNT.findall(ended.tail.splitlines()[-1])}
    passed, failed = counts.get("passed", 0), [*_FAILED.findall(ended.output)]
    others = sum(counts.values()) - passed
    return Figure(
        headline=f"{passed} browser tests passed, {others} did not",
        summary=f"{passed} browser tests passed in {ended.seconds:.0f} s and {others} did not; every action that the "
        f"dashboard registers has a test; a message was in the other window within a second, and a cut network and "
        f"a killed API process lost and repeated nothing" + "".join(f"; failed: {name}" for name in failed),
        holds=ended.exit_code == 0 and passed > 0 and others == 0,
        details={"counts": {**counts}, "failed": failed},
    )
