"""Builds the wheel, downloads its dependencies, and installs both in an empty folder with the README's own commands.

The download is measured separately. The installation then uses a folder of wheels and no network, so its time does not
depend on the connection. The package index is the one configured in this process's environment variables.
"""

import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.support.readme_quickstart.readme_blocks import ROOT, ReadmeBlocks
from bench.support.readme_quickstart.user_shell import UserShell

_INDEX_VARIABLE: Final = re.compile(r"(?i)(PIP_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|(https?|all|no)_proxy)")
_COPIED: Final = ("src", "pyproject.toml", "README.md", "LICENSE")
_MEGA: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class InstallTimes:
    download_seconds: float
    download_mb: float
    packages: int
    install_seconds: float


async def build_wheel(page: ReadmeBlocks, scratch: Path) -> Path:
    """Builds the wheel with the README's command in a copy of the checkout, and returns the folder with the wheel."""
    checkout = scratch / "checkout"
    checkout.mkdir(parents=True)
    for name in _COPIED:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, checkout / name)
    builder = UserShell(checkout, {})
    await builder.run("python3 -m venv .venv && source .venv/bin/activate")
    await builder.run(page.build, _index_variables(scratch))
    return checkout / "dist"


async def install_wheel(page: ReadmeBlocks, shell: UserShell, dist: Path, scratch: Path) -> InstallTimes:
    shutil.copytree(dist, shell.folder / "dist")
    wheels = scratch / "wheels"
    loader = UserShell(scratch, {})
    await loader.run("python3 -m venv loader")
    started = time.monotonic()
    await loader.run(
        f'loader/bin/pip download --quiet --dest "{wheels}" "$(ls "{shell.folder}"/dist/*.whl)[dev]"',
        _index_variables(scratch),
    )
    download = time.monotonic() - started
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_NO_CACHE_DIR": "1"}
    seconds = sum([await shell.run(block, offline) for block in page.install])
    sizes = [file.stat().st_size for file in wheels.iterdir()]
    return InstallTimes(download, sum(sizes) / _MEGA, len(sizes), seconds)


def _index_variables(scratch: Path) -> dict[str, str]:
    """Returns this environment's variables for the package index, with an empty cache so that downloads are real."""
    variables = {name: value for name, value in os.environ.items() if _INDEX_VARIABLE.fullmatch(name)}
    return {**variables, "PIP_CACHE_DIR": str(scratch / "cache"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
