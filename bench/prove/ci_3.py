"""CI notices what it noticed before its tests were merged and its samples cut: each of thirty defects fails it.

The defects are in bench/ci/mutations.toml, each with the test or the sample of CI that has to fail. They are made one
after the other in a fresh clone with an environment of its own. A sample makes two of them.
"""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.ci.fresh_clone import Ended, fresh_clone, run
from bench.ci.lanes import ROOT, load_lanes
from bench.prove.figure import Figure, require

_MUTATIONS: Final = ROOT / "bench" / "ci" / "mutations.toml"
_WANTED: Final = 30
_FAILED: Final = 1
"""The exit code of pytest when a test failed, and of a claim that does not hold; others say that nothing was tested."""


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    breaks: str
    file: str
    before: str
    after: str
    caught_by: str

    @property
    def is_in_ci(self) -> bool:
        """Whether a lane of CI runs what has to catch it."""
        path = self.caught_by.partition("::")[0]
        commands = [lane.command for lane in load_lanes().values()]
        return any(path == word or path.startswith(f"{word}/") for command in commands for word in command)

    def apply(self, root: Path) -> None:
        path = root / self.file
        text = path.read_text()
        require(holds=text.count(self.before) == 1, otherwise=f"{self.name}: not exactly one place in {self.file}")
        path.write_text(text.replace(self.before, self.after))

    def undo(self, root: Path) -> None:
        path = root / self.file
        path.write_text((ROOT / self.file).read_text())


def mutations() -> list[Mutation]:
    return [Mutation(**table) for table in tomllib.loads(_MUTATIONS.read_text())["mutation"]]


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    known = mutations()
    require(holds=len(known) >= _WANTED, otherwise=f"there are {len(known)} mutations, not {_WANTED}")
    astray = [mutation.name for mutation in known if not mutation.is_in_ci]
    require(holds=not astray, otherwise=f"CI does not run what should catch {astray}")
    missed = []
    async with fresh_clone() as clone:
        await _install(clone)
        for mutation in known[:2] if quick else known:
            mutation.apply(clone)
            ended = await _check(mutation, clone)
            mutation.undo(clone)
            caught = ended.exit_code == _FAILED
            print(f"  {'caught' if caught else 'MISSED'} {mutation.name} ({ended.seconds:.0f} s)", flush=True)
            if not caught:
                missed.append(mutation.name)
    tried = 2 if quick else len(known)
    return Figure(
        text=f"{tried - len(missed)} of {tried} defects fail CI" + "".join(f"; missed: {name}" for name in missed),
        holds=not missed,
        details={"missed": [*missed], "mutations": [mutation.name for mutation in known]},
    )


async def _install(clone: Path) -> None:
    """An environment in the clone: processes that tests start have to find the clone's source too."""
    ended = await run("just", "setup", directory=clone)
    require(holds=ended.exit_code == 0, otherwise=f"the clone's environment could not be made:\n{ended.tail}")


async def _check(mutation: Mutation, clone: Path) -> Ended:
    programs = clone / ".venv" / "bin"
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "FOOTPLATE_TESTS_NEED_DOCKER": "1",
    }
    if mutation.caught_by.startswith("tests/"):
        arguments = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", mutation.caught_by]
    else:
        arguments = ["-m", "bench.prove", mutation.caught_by]
        environment["QUICK"] = "1"
    return await run(str(programs / "python"), *arguments, directory=clone, environment=environment, limit=900)
