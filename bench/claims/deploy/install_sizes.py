"""Each extra installs with its size and time; the client takes under 60 MB, from wheels, also for macOS and Windows.

The packages come from the configured index, without a cache. A command that needs more names the extra.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.ci import fresh_clone
from bench.ci.lanes import ROOT
from bench.claims.seeds import client_resolves_on_other_systems
from bench.prove.figure import Figure, require

_MAX_CLIENT_MB: Final = 60
_MEGA: Final = 1_000_000
_REFUSED: Final = {"": ("api", "footplate[server]"), "server": ("dev", "footplate[dev]")}
"""A command that does not run with the extra, and the extra that it names. `server` has no program of PostgreSQL."""


@dataclass(frozen=True, slots=True)
class _Installed:
    megabytes: float
    seconds: float
    packages: int


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    scratch = Path(tempfile.mkdtemp(prefix="footplate-install-"))
    try:
        wheel = await _build_wheel(scratch)
        extras = ("",) if quick else ("", "server", "claude", "docker", "dev")
        found = {extra or "client": await _install(scratch, wheel, extra) for extra in extras}
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch)
    client = await client_resolves_on_other_systems.prove(quick)
    text = "; ".join(
        f"{name} {one.megabytes:.0f} MB, {one.packages} packages, {one.seconds:.0f} s" for name, one in found.items()
    )
    return Figure(
        headline=f"the client takes {found['client'].megabytes:.0f} MB (limit {_MAX_CLIENT_MB}), "
        + ", ".join(f"{name} {one.megabytes:.0f}" for name, one in found.items() if name in {"server", "dev"}),
        summary=f"installed with pip, without a cache: {text}. {client.summary}",
        holds=found["client"].megabytes < _MAX_CLIENT_MB and client.holds,
        details={name: {"mb": round(one.megabytes), "seconds": round(one.seconds)} for name, one in found.items()},
    )


async def _build_wheel(scratch: Path) -> Path:
    await _run(sys.executable, "-m", "venv", str(scratch / "builder"))
    await _run(
        str(scratch / "builder/bin/pip"), "wheel", "--quiet", "--no-deps", "--wheel-dir", str(scratch), str(ROOT)
    )
    return next(scratch.glob("footplate-*.whl"))  # noqa: ASYNC240 - a listing of one directory


async def _install(scratch: Path, wheel: Path, extra: str) -> _Installed:
    folder = scratch / f"with-{extra or 'client'}"
    await _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    began = time.monotonic()
    await _run(
        str(scratch / "builder/bin/pip"),
        *("--python", str(folder / "bin/python"), "install", "--quiet", "--no-cache-dir", "--no-compile"),
        *((f"{wheel}[{extra}]",) if extra else ("--only-binary", ":all:", str(wheel))),
    )
    seconds = time.monotonic() - began
    packages = next(folder.glob("lib/python*/site-packages"))
    megabytes = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / _MEGA
    if extra in _REFUSED:
        command, named = _REFUSED[extra]
        ended = await fresh_clone.run(
            str(folder / "bin/footplate"), command, directory=folder, environment=_user_environment(folder), limit=120
        )
        require(holds=ended.exit_code == 1 and named in ended.output, otherwise=f"`{command}`: {ended.output}")
    installed = _Installed(megabytes, seconds, len([*packages.glob("*.dist-info")]))
    shutil.rmtree(folder)
    return installed


def _user_environment(folder: Path) -> Mapping[str, str]:
    return {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}


async def _run(*command: str) -> None:
    ended = await fresh_clone.run(*command, directory=ROOT, environment={**os.environ}, limit=1800)
    require(holds=ended.exit_code == 0, otherwise=f"{' '.join(command[:3])} failed:\n{ended.tail}")
