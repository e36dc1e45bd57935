"""Names come from one vocabulary, packages are small and without cycles, and renaming changed no behaviour.

Checks the vocabulary, the glossary, the sizes of packages and the import contracts. Then it runs the replay,
compatibility and security suites, and compares them with those of the last commit before the names changed: none of
their input files, literals, assertions and calls is lost.
"""

import os
import sys
from pathlib import Path
from typing import Final

from bench import code_rules, vocabulary
from bench.ci import fresh_clone
from bench.prove.figure import Figure, require
from bench.support.suite_comparison import SUITES, find_losses

_BEFORE: Final = "dc76197"
"""The last commit with the old names."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    problems = [
        *vocabulary.find_banned_terms(),
        *vocabulary.find_unexplained_classes(),
        *code_rules.find_crowded_packages(code_rules.SOURCE),
        *find_losses(_BEFORE),
    ]
    contracts = await _run(str(Path(sys.executable).parent / "lint-imports"), "--no-cache")
    kept = next((line for line in contracts.splitlines() if line.startswith("Contracts:")), "")
    suites = SUITES[:1] if quick else SUITES
    tests = await _run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suites)
    passed = tests.strip().splitlines()[-1]
    return Figure(
        headline=f"{len(problems)} problems with names, packages or suites; import contracts kept",
        summary=f"{problems[0] if problems else 'No banned word, no class without a term, no crowded package.'} "
        f"{kept} The suites {', '.join(suites)} have lost nothing since the rename: {passed}.",
        holds=not problems and ", 0 broken" in kept,
        details={"problems": [*problems[:50]], "contracts": kept, "tests": passed},
    )


async def _run(*command: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(Path.home())}
    ended = await fresh_clone.run(*command, environment=environment, limit=1200)
    require(holds=ended.exit_code == 0, otherwise=f"{' '.join(command[1:])} failed:\n{ended.tail}")
    return ended.output
