"""Every attack that was found on a running server succeeds on the commit before the fixes, and none succeeds now.

Each attack of bench/support/guard runs against this checkout, on a real server. The old commit has other names, so
there the attack of the same name runs as it was when the fixes were made. Some attacks act as another user of the
machine, which requires root.
"""

import asyncio
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path
from typing import Final

from bench.ci.fresh_clone import run
from bench.prove.figure import Figure, require

COMMIT_BEFORE_FIXES: Final = "30a320c"
"""The last commit without the fixes."""
_COMMIT_OF_OLD_ATTACKS: Final = "dc76197"
"""The last commit whose attacks run on the old commit."""
_OLD_ATTACKS: Final = "bench/prove/guard"
_ROOT: Final = Path(__file__).resolve().parents[3]
_ATTACKS: Final = _ROOT / "bench" / "support" / "guard"
_QUICK_ATTACKS: Final = ("hook_matcher",)
_LIMIT: Final = 300.0
_RESULT_PREFIX: Final = '{"achieved":'


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    names = list(_QUICK_ATTACKS) if quick else _list_attacks()
    before: dict[str, str | None] = {}
    now: dict[str, str | None] = {}
    old = Path(tempfile.mkdtemp(prefix="footplate-before-"))
    try:
        await _check_out(old)
        for name in names:
            before[name], now[name] = await asyncio.gather(
                _run_attack(name, old, old / _OLD_ATTACKS, str(old / ".venv" / "bin" / "python")),
                _run_attack(name, _ROOT, _ATTACKS, sys.executable),
            )
            print(f"  {name}: before: {before[name] or 'failed'}; now: {now[name] or 'failed'}", flush=True)
    finally:
        shutil.rmtree(old)
    harmless = [name for name, achieved in before.items() if achieved is None]
    successful = [name for name, achieved in now.items() if achieved is not None]
    return Figure(
        headline=f"{len(names)} attacks: {len(names) - len(harmless)} succeed on the old commit, {len(successful)} now",
        summary=f"{len(names)} attacks: {len(names) - len(harmless)} succeed on {COMMIT_BEFORE_FIXES}, "
        f"{len(successful)} succeed now"
        + "".join(f"; {name} succeeds" for name in successful)
        + "".join(f"; {name} never succeeded" for name in harmless),
        holds=not successful and not harmless,
        details={"before": {**before}, "now": {**now}},
    )


def _list_attacks() -> list[str]:
    return sorted(path.stem for path in _ATTACKS.glob("*.py") if "\nasync def attack() -> " in path.read_text())


async def _check_out(directory: Path) -> None:
    """Checks out the old commit and its attacks, with an interpreter that uses this environment's packages and the
    checkout's code.
    """
    await _run_command("git", "clone", "--quiet", "--no-checkout", str(_ROOT), str(directory))
    await _run_command("git", "-C", str(directory), "checkout", "--quiet", COMMIT_BEFORE_FIXES)
    await _run_command("git", "-C", str(directory), "checkout", "--quiet", _COMMIT_OF_OLD_ATTACKS, "--", _OLD_ATTACKS)
    await _run_command(sys.executable, "-m", "venv", "--without-pip", str(directory / ".venv"))
    packages = next((directory / ".venv" / "lib").glob("python*/site-packages"))
    (packages / "before.pth").write_text(f"{directory / 'src'}\n{directory}\n{sysconfig.get_path('purelib')}\n")
    _write_entry_points(directory / "pyproject.toml", packages / "footplate-0.dist-info")


def _write_entry_points(project: Path, metadata: Path) -> None:
    """Writes package metadata that replaces this environment's, whose entry points name modules of this checkout."""
    found = tomllib.loads(project.read_text())["project"]
    lines: list[str] = []
    for group, points in found["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {found['name']}\nVersion: {found['version']}\n")
    (metadata / "entry_points.txt").write_text("\n".join(lines))


async def _run_attack(name: str, checkout: Path, attacks: Path, python: str) -> str | None:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    runner = str(attacks / "run_attack.py")
    ended = await run(python, runner, name, directory=checkout, environment=environment, limit=_LIMIT)
    require(holds=ended.exit_code is not None, otherwise=f"{name} did not end within {_LIMIT:.0f} s")
    lines = [line for line in ended.output.splitlines() if line.startswith(_RESULT_PREFIX)]
    require(holds=ended.exit_code == 0 and bool(lines), otherwise=f"{name} could not be run: {ended.tail}")
    achieved: str | None = json.loads(lines[-1])["achieved"]
    return achieved


async def _run_command(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    require(holds=await process.wait() == 0, otherwise=f"{command[0]} failed")
