"""Measures the CPU time of a process and its descendants."""

import os
from collections import defaultdict
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def process_tree_cpu_seconds(pid: int) -> float:
    """Returns CPU seconds. A process that has ended is counted once its parent has waited for it."""
    children: dict[int, list[int]] = defaultdict(list)
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        children[int(fields[1])].append(int(entry.name))
        ticks[int(entry.name)] = sum(int(field) for field in fields[11:15])
    waiting, total = [pid], 0
    while waiting:
        one = waiting.pop()
        total += ticks.get(one, 0)
        waiting += children[one]
    return total / _TICKS
