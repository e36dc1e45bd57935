"""A changed file marks exactly the results of the claims that loaded it, and a long figure fails the build.

Two claims run at full size: one that only reads a page, and one with a server, workers and sandboxes. Their results are
copied into a fresh clone, because the workers load the code of this checkout. There one character of a module, of a SQL
file and of a program inside the sandbox is changed, one after the other. The page must say "code changed since" for the
second claim and other current results that loaded the file, and not for the first claim. At last a figure of sixteen
words must fail the check.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.ci import fresh_clone
from bench.prove.figure import MAX_HEADLINE_LENGTH, Figure, require
from bench.prove.loaded_files import ROOT
from bench.prove.page import parse_states
from bench.prove.results import RESULTS

_CLAIMS: Final = ("box-10", "core-1")
_LOADED_BY_WORKERS: Final = (
    "src/footplate/engine/turn/runner.py",
    "src/footplate/store/sql/turns.sql",
    "src/footplate/environments/programs/init_process.py",
)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    files = _LOADED_BY_WORKERS[:1] if quick else _LOADED_BY_WORKERS
    async with fresh_clone.fresh_clone() as clone:
        for claim in _CLAIMS:
            await _run(ROOT, "-m", "bench.prove", claim)
            shutil.copy(RESULTS / f"{claim}.json", clone / "bench" / "results")
        before = await _read_states(clone)
        require(
            holds=all(before[claim] == "current" for claim in _CLAIMS),
            otherwise=f"after their runs the page says {[before[claim] for claim in _CLAIMS]}",
        )
        wrong: list[str] = []
        for name in files:
            original = (clone / name).read_text()
            (clone / name).write_text(original + " ")
            changed = {claim for claim, state in (await _read_states(clone)).items() if state != before[claim]}
            (clone / name).write_text(original)
            loading = {claim for claim, state in before.items() if state == "current" and name in _loaded(clone, claim)}
            is_exact = changed == loading and {*_CLAIMS} & changed == {"core-1"}
            wrong += [] if is_exact else [f"{name}: {sorted(changed)}"]
        result = clone / "bench" / "results" / "core-1.json"
        record = json.loads(result.read_text())
        result.write_text(json.dumps({**record, "headline": "one " * (MAX_HEADLINE_LENGTH + 1)}))
        refused = await _call(clone, "-m", "bench.prove.page", "--check")
    return Figure(
        headline=f"{len(files) - len(wrong)} of {len(files)} changes mark exactly the claims that load them",
        summary=f"Files changed by one character: {', '.join(files)}. {'; '.join(wrong)}",
        holds=not wrong and refused.exit_code == 1 and "more than" in refused.output,
        details={"wrong": [*wrong], "files": [*files]},
    )


def _loaded(clone: Path, claim: str) -> Mapping[str, str]:
    """Returns the files that the claim's run loaded, with their hashes."""
    code: Mapping[str, str] = json.loads((clone / "bench" / "results" / f"{claim}.json").read_text())["code"]
    return code


async def _read_states(clone: Path) -> Mapping[str, str]:
    await _run(clone, "-m", "bench.prove.page")
    return parse_states((clone / "docs" / "evidence.md").read_text())


async def _run(checkout: Path, *arguments: str) -> None:
    ended = await _call(checkout, *arguments)
    require(holds=ended.exit_code == 0, otherwise=f"{' '.join(arguments)} failed:\n{ended.tail}")


async def _call(checkout: Path, *arguments: str) -> fresh_clone.FinishedProcess:
    """Runs this environment's interpreter with the code of the checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "QUICK"}
    path = os.pathsep.join([str(checkout / "src"), str(checkout)])
    return await fresh_clone.run(
        sys.executable, *arguments, directory=checkout, environment={**environment, "PYTHONPATH": path}, limit=900
    )
