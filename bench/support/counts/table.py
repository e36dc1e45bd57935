"""Reads and writes the committed table of counts, and compares measured counts with it.

    python -m bench.support.counts.table > bench/support/counts/table.toml

counts everything again and replaces the table.
"""

import asyncio
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from bench.support.counts.counters import Counts, Repetitions

_TABLE: Final = Path(__file__).with_name("table.toml")
_MAY_BE_FEWER: Final = {"redis", "processes"}
"""Kinds that may be fewer: on a busy machine more events share one command, and a pool's threads are reused."""
_NOT_COMPARED: Final = {("claude", "redis")}
"""The number of entries depends on when each line of the CLI arrives."""
_BY_TIME: Final = {"rules"}
"""Statements that a turn repeats every second, so that a slow machine runs more of them."""
_HEAD: Final = """\
# The counts of one run of each scenario. CI counts again and fails where a count differs; Redis commands,
# processes and threads may be fewer. Those of Claude Code are upper limits, without Redis commands. Written by
# `python -m bench.support.counts.table`.
"""


def load_table() -> dict[str, Counts]:
    return cast("dict[str, Counts]", tomllib.loads(_TABLE.read_text()))


def differences(table: Mapping[str, Counts], measured: Mapping[str, Counts]) -> list[str]:
    """Describes each difference, for the scenarios that were measured."""
    found = []
    for scenario, kinds in measured.items():
        known = table.get(scenario, {})
        harness = scenario.partition(":")[0]
        for kind, counts in kinds.items():
            if (harness, kind) in _NOT_COMPARED:
                continue
            expected = known.get(kind, {})
            for name in sorted({*counts, *expected} - _BY_TIME):
                now, before = counts.get(name, 0), expected.get(name, 0)
                exact = harness != "claude" and kind not in _MAY_BE_FEWER
                if now > before or (now < before and exact):
                    found.append(f"{scenario}: {kind}: {name} {now} instead of {before}")
    return found


def write_table(measured: Mapping[str, Counts]) -> str:
    lines = [_HEAD.rstrip()]
    for scenario, kinds in measured.items():
        lines += ["", f"[{json.dumps(scenario)}]"]
        for kind, counts in kinds.items():
            cells = ", ".join(f"{json.dumps(name)} = {count}" for name, count in counts.items())
            lines.append(f"{kind} = {{ {cells} }}" if cells else f"{kind} = {{}}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from bench.support.counts.scenarios import measure

    print(write_table(asyncio.run(measure(lambda _: Repetitions(20, 20))).counts), end="")
