"""Measures the CPU time of a process and its descendants, or of the processes in a list."""

import os
from collections import defaultdict
from collections.abc import Iterable
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
        fields = _read_stat(int(entry.name))
        if fields:
            children[int(fields[1])].append(int(entry.name))
            ticks[int(entry.name)] = _count_ticks(fields)
    waiting, total = [pid], 0
    while waiting:
        one = waiting.pop()
        total += ticks.get(one, 0)
        waiting += children[one]
    return total / _TICKS


def cpu_seconds(pids: Iterable[int]) -> float:
    """Returns the CPU seconds of these processes and of all their children that have ended and were waited for."""
    return sum(_count_ticks(_read_stat(pid)) for pid in pids) / _TICKS


def _count_ticks(fields: list[str]) -> int:
    return sum(int(field) for field in fields[11:15])


def _read_stat(pid: int) -> list[str]:
    """Returns the fields after the command's name, none for a process that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
