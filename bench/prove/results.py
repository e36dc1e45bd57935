"""Stores the result of each full run in bench/results, with the commit and the hashes of the code that it covers."""

import datetime as dt
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Self

from bench.prove.figure import Figure
from bench.prove.loaded_files import ROOT, hash_files
from footplate.domain.json import JsonObject

RESULTS: Final = ROOT / "bench" / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    claim: str
    title: str
    date: str
    commit: str = ""
    cores: int = 0
    holds: bool
    headline: str
    summary: str = ""
    seconds: int
    details: JsonObject = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    """Content hashes of the files that were loaded, by path. Empty in results from before they were recorded."""

    @classmethod
    def create(cls, claim: str, title: str, figure: Figure, *, seconds: float, code: Mapping[str, str]) -> Self:
        return cls(
            claim=claim,
            title=title,
            date=dt.datetime.now(dt.UTC).date().isoformat(),
            commit=_describe_commit(),
            cores=os.cpu_count() or 0,
            holds=figure.holds,
            headline=figure.headline,
            summary=figure.summary,
            seconds=round(seconds),
            details=figure.details,
            code=code,
        )

    def is_current(self, root: Path = ROOT) -> bool:
        """Whether every file that the run loaded is the same today."""
        return bool(self.code) and hash_files(self.code, root) == self.code


def write_result(result: Result) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{result.claim}.json").write_text(json.dumps(asdict(result), indent=2) + "\n")


def load_result(claim: str) -> Result | None:
    path = RESULTS / f"{claim}.json"
    return Result(**json.loads(path.read_text())) if path.exists() else None


def _describe_commit() -> str:
    """Returns the commit, marked if tracked files other than results have changed since."""
    commit = _git("rev-parse", "--short=10", "HEAD")
    return f"{commit}-dirty" if _git("status", "--porcelain", "-uno", "--", ".", ":!bench/results") else commit


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout.strip()
