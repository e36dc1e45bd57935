"""Installs the peers at pinned versions from PyPI and npm into `.cache/compare`, each in a directory of its own."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

from bench.compare.peer import run_command
from bench.support.speed.measurement import ROOT

_CACHE: Final = ROOT / ".cache" / "compare"
_COMPLETE: Final = ".complete"


async def install_python(name: str, *requirements: str) -> Path:
    """Returns the directory of its programs. Needs uv, and Python 3.12 or later on the PATH or below pyenv."""
    directory, complete = _locate(name, requirements)
    if not complete:
        uv, python = _find_program("uv"), directory / "bin" / "python"
        environment = {**os.environ, "PATH": os.pathsep.join([os.environ["PATH"], *_pyenv_directories()])}
        await run_command([uv, "venv", "--quiet", "--clear", "--python", ">=3.12", str(directory)], environment)
        await run_command([uv, "pip", "install", "--quiet", "--python", str(python), *requirements], environment)
        await asyncio.to_thread((directory / _COMPLETE).touch)
    return directory / "bin"


async def install_node(name: str, *requirements: str) -> Path:
    """Returns the directory of its programs. Needs npm."""
    directory, complete = _locate(name, requirements)
    if not complete:
        argv = [_find_program("npm"), "install", "--no-audit", "--no-fund", "--prefix", str(directory), *requirements]
        await run_command(argv, os.environ)
        await asyncio.to_thread((directory / _COMPLETE).touch)
    return directory / "node_modules" / ".bin"


def _locate(name: str, requirements: tuple[str, ...]) -> tuple[Path, bool]:
    """Returns its directory, named after the pinned version, and whether the installation there is complete."""
    directory = _CACHE / f"{name}-{requirements[0].rpartition('=')[2].rpartition('@')[2]}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    return directory, (directory / _COMPLETE).exists()


def _find_program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is not installed; the comparison installs peers with it.")
    return found


def _pyenv_directories() -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return [str(path) for path in sorted((root / "versions").glob("3.*/bin"))]
