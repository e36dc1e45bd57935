"""What the attack on the running server found no longer works; on the commit before the fixes it did.

Each attack of bench/prove/guard runs against a checkout of that commit and against this one, on a real server. Some
act as another user of the machine, which takes root.
"""

import asyncio
import json
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure, NotHeld, require

BEFORE: Final = "30a320c"
"""The last commit without the fixes."""
_ROOT: Final = Path(__file__).resolve().parents[2]
_ATTACKS: Final = _ROOT / "bench" / "prove" / "guard"
_RUNNER: Final = _ATTACKS / "run_attack.py"
_SAMPLE: Final = ("hook_matcher",)
_LIMIT: Final = 300.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    names = list(_SAMPLE) if quick else _list_attacks()
    before: dict[str, str | None] = {}
    now: dict[str, str | None] = {}
    old = Path(tempfile.mkdtemp(prefix="footplate-before-"))
    try:
        await _check_out(old)
        for name in names:
            before[name] = await _run(name, old)
            now[name] = await _run(name, _ROOT)
            print(f"  {name}: before: {before[name] or 'withstood'}; now: {now[name] or 'withstood'}", flush=True)
    finally:
        shutil.rmtree(old)
    harmless = [name for name, achieved in before.items() if achieved is None]
    successful = [name for name, achieved in now.items() if achieved is not None]
    return Figure(
        text=f"{len(names)} attacks: {len(names) - len(harmless)} succeed on {BEFORE}, {len(successful)} succeed now"
        + "".join(f"; {name} succeeds" for name in successful)
        + "".join(f"; {name} never succeeded" for name in harmless),
        holds=not successful and not harmless,
        details={"before": {**before}, "now": {**now}},
    )


def _list_attacks() -> list[str]:
    return sorted(path.stem for path in _ATTACKS.glob("*.py") if "async def attack() -> " in path.read_text())


async def _check_out(place: Path) -> None:
    """That commit, with an interpreter that finds its packages in this environment and the product in the checkout."""
    await _call("git", "clone", "--quiet", "--no-checkout", str(_ROOT), str(place))
    await _call("git", "-C", str(place), "checkout", "--quiet", BEFORE)
    await _call(sys.executable, "-m", "venv", "--without-pip", str(place / ".venv"))
    packages = next((place / ".venv" / "lib").glob("python*/site-packages"))
    (packages / "before.pth").write_text(f"{place / 'src'}\n{place}\n{sysconfig.get_path('purelib')}\n")


async def _run(name: str, checkout: Path) -> str | None:
    python = str(checkout / ".venv" / "bin" / "python") if checkout != _ROOT else sys.executable
    process = await asyncio.create_subprocess_exec(
        "env", f"PYTHONPATH={checkout}", python, str(_RUNNER), name, cwd=checkout, stdout=-1, stderr=-1
    )
    try:
        async with asyncio.timeout(_LIMIT):
            output, errors = await process.communicate()
    except TimeoutError:
        process.terminate()
        await process.wait()
        raise NotHeld(f"{name} did not end within {_LIMIT:.0f} s") from None
    lines = output.decode().splitlines()
    said = errors.decode()[-2000:]
    require(holds=process.returncode == 0 and bool(lines), otherwise=f"{name} could not be run: {said}")
    achieved: str | None = json.loads(lines[-1])["achieved"]
    return achieved


async def _call(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    require(holds=await process.wait() == 0, otherwise=f"{command[0]} failed")
