"""Adds up the findings of all parts of core-2."""

from collections import Counter
from dataclasses import dataclass, field

from bench.support.crash.session_check import SessionAccount


@dataclass(slots=True)
class CrashFindings:
    turns: int = 0
    attempts: int = 0
    positions: int = 0
    calls: int = 0
    unknown: int = 0
    faults: list[str] = field(default_factory=list)
    tallies: Counter[str] = field(default_factory=Counter)

    def add(self, account: SessionAccount) -> None:
        self.turns += account.turns
        self.attempts += account.attempts
        self.positions += account.head
        self.calls += len(account.calls)
        self.unknown += len(account.unknown)
        self.record_faults(*account.faults)

    def record_faults(self, *texts: str) -> None:
        self.faults.extend(texts)
        for text in texts:
            print(f"  FAULT {text}", flush=True)


def print_histogram(title: str, counts: Counter[str]) -> None:
    print(f"  {title}")
    for label, count in counts.items():
        print(f"    {label:>22} {count:4d} {'#' * count}", flush=True)
