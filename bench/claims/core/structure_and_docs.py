"""The layers hold, the domain does no I/O, the docs are true, an external harness works, CI takes under 30 minutes.

At full size it also runs CI in a fresh clone of the last commit, and the tests of the docs. A sample omits both.
"""

import os
import re
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Final

from bench import code_rules
from bench.ci import fresh_clone
from bench.prove.figure import Figure, NotHeld, require
from bench.support import external_harness
from bench.support.cluster import open_cluster
from bench.support.response_validation import ValidationLedger

ROOT: Final = Path(__file__).resolve().parents[3]
_CONTRACT: Final = "The domain does no I/O"
_CI_LIMIT: Final = 30 * 60


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    contracts = await _check_import_contracts()
    files, longest = _measure_files()
    await _run_command(sys.executable, "-m", "bench.code_rules")
    if not quick:
        await _run_command(
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/docs/test_pages_match_code.py"
        )
    await _run_external_harness()
    ci = None if quick else await _run_ci()
    took = "CI not run" if ci is None else f"CI took {ci / 60:.1f} minutes"
    return Figure(
        headline=f"all import contracts kept, {files} files, {took}",
        summary=f"{contracts} import contracts kept, {files} files in src of {longest} lines at most, the domain does "
        f"no I/O, a harness from another package ran, {took} in a fresh clone (limit {_CI_LIMIT // 60})",
        holds=ci is None or ci < _CI_LIMIT,
        details={"contracts": contracts, "files": files, "longest": longest, "ci_seconds": ci and round(ci)},
    )


async def _check_import_contracts() -> int:
    """Checks that the import linter finds all contracts kept, including the one about the domain."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    domain = [item for item in linter["contracts"] if item["name"] == _CONTRACT]
    sources = [item["source_modules"] for item in domain]
    require(holds=sources == [["footplate.domain"]], otherwise="there is no contract for the domain")
    output = await _run_command(str(Path(sys.executable).parent / "lint-imports"), "--no-cache")
    counted = re.search(r"Contracts: (\d+) kept, 0 broken", output)
    if counted is None or f"{_CONTRACT} KEPT" not in output:
        raise NotHeld(f"the import linter does not report that all contracts are kept: {output}")
    return int(counted[1])


def _measure_files() -> tuple[int, int]:
    lengths = [
        len(path.read_text().splitlines())
        for path in code_rules.SOURCE.rglob("*")
        if path.suffix in {".py", ".sql"} and path.is_file()
    ]
    return len(lengths), max(lengths)


async def _run_external_harness() -> None:
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        target = Path(directory) / "installed"
        await external_harness.install_package(target)
        async with open_cluster(environment=external_harness.path_variables(target)) as cluster:
            await external_harness.run_turns(cluster, ValidationLedger())


async def _run_ci() -> float:
    # Above the limit, so that a slow run is measured rather than cancelled.
    ended = await fresh_clone.run_ci(limit=2 * _CI_LIMIT)
    require(holds=ended.exit_code == 0, otherwise=f"CI failed:\n{ended.tail}")
    return ended.seconds


async def _run_command(*argv: str) -> str:
    """Runs a command and returns its output; the claim fails if the command fails."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(Path.home())}
    ended = await fresh_clone.run(*argv, environment=environment, limit=300)
    require(holds=ended.exit_code == 0, otherwise=f"{' '.join(argv[1:] or argv)} failed:\n{ended.tail}")
    return ended.output
