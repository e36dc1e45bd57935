"""Applies defects to a fresh clone, and checks that the test or the CI sample of each of them fails.

bench/ci/mutations.toml has the defects with which CI must fail, and tests/requirements/mutations.toml those that remove
the behaviour of a requirement. They are applied one after the other, in a clone with its own Python environment.
"""

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.ci.fresh_clone import FinishedProcess, fresh_clone, run
from bench.ci.lanes import ROOT, load_lanes
from bench.prove.figure import CRASHED_HEADLINE, require

CI_MUTATIONS: Final = ROOT / "bench" / "ci" / "mutations.toml"
REQUIREMENT_MUTATIONS: Final = ROOT / "tests" / "requirements" / "mutations.toml"
_PYTEST: Final = ("-m", "pytest", "-p", "no:cacheprovider")
_TEST_FAILED: Final = re.compile(r"^\d+ failed", re.MULTILINE)
_CLAIM_FAILED: Final = re.compile(rf"^FAILS  (?!.*: {re.escape(CRASHED_HEADLINE)})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    breaks: str
    file: str
    before: str
    after: str
    caught_by: str
    requirement: str | None = None
    """The requirement whose behaviour it removes."""

    @property
    def is_in_ci(self) -> bool:
        """Whether a lane of CI runs the test or sample that must catch it."""
        path = self.caught_by.partition("::")[0]
        commands = [lane.command for lane in load_lanes().values()]
        return any(path == argument or path.startswith(f"{argument}/") for command in commands for argument in command)

    def apply(self, root: Path) -> None:
        path = root / self.file
        text = path.read_text()
        require(holds=text.count(self.before) == 1, otherwise=f"{self.name}: its code is not once in {self.file}")
        path.write_text(text.replace(self.before, self.after))

    @property
    def is_test(self) -> bool:
        return self.caught_by.startswith("tests/")

    def is_caught(self, output: str) -> bool:
        """Whether the output of the test or sample shows a failure. A test or sample that crashes has not caught it."""
        return bool((_TEST_FAILED if self.is_test else _CLAIM_FAILED).search(output))


def load_mutations(path: Path = CI_MUTATIONS) -> list[Mutation]:
    return [Mutation(**table) for table in tomllib.loads(path.read_text())["mutation"]]


async def find_missed(chosen: Sequence[Mutation]) -> list[str]:
    """Returns the names of the mutations that no test catches."""
    missed = []
    async with fresh_clone() as clone:
        await _install(clone)
        await _check_unchanged(clone, [mutation for mutation in chosen if mutation.is_test])
        for mutation in chosen:
            mutation.apply(clone)
            ended = await _check(mutation, clone)
            await run("git", "checkout", "--quiet", "--", mutation.file, directory=clone)
            caught = mutation.is_caught(ended.output)
            print(f"  {'caught' if caught else 'MISSED'} {mutation.name} ({ended.seconds:.0f} s)", flush=True)
            if not caught:
                missed.append(mutation.name)
    return missed


async def _install(clone: Path) -> None:
    """Installs a Python environment in the clone, because processes that tests start must import the clone's source."""
    ended = await run("just", "setup", directory=clone)
    require(holds=ended.exit_code == 0, otherwise=f"the clone could not be installed:\n{ended.tail}")


async def _check_unchanged(clone: Path, tests: Sequence[Mutation]) -> None:
    """Checks that the tests pass without a defect."""
    if not tests:
        return
    ended = await _python(clone, *_PYTEST, *sorted({mutation.caught_by for mutation in tests}))
    require(holds=ended.exit_code == 0, otherwise=f"tests fail without any defect:\n{ended.tail}")


async def _check(mutation: Mutation, clone: Path) -> FinishedProcess:
    if mutation.is_test:
        return await _python(clone, *_PYTEST, "-x", mutation.caught_by)
    return await _python(clone, "-m", "bench.prove", mutation.caught_by)


async def _python(clone: Path, *arguments: str) -> FinishedProcess:
    programs = clone / ".venv" / "bin"
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "FOOTPLATE_TESTS_NEED_DOCKER": "1", "QUICK": "1"}
    return await run(str(programs / "python"), *arguments, directory=clone, environment=environment, limit=900)
