"""The house is in order: layers, sizes, a pure domain, true pages, a harness from outside, and a CI that is soon done.

At full size it also runs CI itself, in a fresh clone of the last commit; a quick run does not, because CI runs it.
"""

import ast
import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench import house
from bench.prove import out_of_tree
from bench.prove.checking import Ledger
from bench.prove.cluster import open_cluster
from bench.prove.figure import Figure, NotHeld, require

ROOT: Final = Path(__file__).resolve().parents[2]
DOMAIN: Final = ROOT / "src" / "footplate" / "domain"
_CONTRACT: Final = "The domain does no I/O"
_MAY_IMPORT: Final = frozenset(
    {
        *("asyncio", "base64", "collections", "contextlib", "dataclasses", "datetime", "enum", "footplate", "hashlib"),
        *("ipaddress", "json", "pathlib", "posixpath", "re", "secrets", "shlex", "time", "typing", "urllib"),
    }
)
"""`asyncio`, `contextlib` and `pathlib` for the types of ports, `posixpath` and `urllib.parse` to read names: to run
something would take more than these."""
_MAY_NOT_CALL: Final = frozenset({"open", "print", "input", "exec", "eval", "__import__"})
_CI_LIMIT: Final = 40 * 60
"""Of the whole product. While the core stood alone it was 15 minutes, and took 13.5."""
_PASSED: Final = re.compile(r"(?i)(PATH|HOME|LANG|UV_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|(https?|all|no)_proxy)")


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every proof has this shape
    contracts = await _layers()
    files, longest = _sizes()
    _pure_domain()
    await _run(sys.executable, "-m", "bench.house")
    await _run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/docs/test_truth.py")
    await _outside()
    ci = None if quick else await _ci()
    took = "CI not run in a quick proof" if ci is None else f"CI of a fresh clone took {ci / 60:.1f} minutes"
    return Figure(
        text=f"{contracts} import contracts kept, {files} files in src of {longest} lines at most, the domain does no "
        f"I/O, a harness from another package ran, ARCHITECTURE.md is true, {took}",
        holds=longest <= house.LONGEST and (ci is None or ci < _CI_LIMIT),
        details={"contracts": contracts, "files": files, "longest": longest, "ci_seconds": ci and round(ci)},
    )


async def _layers() -> int:
    """Contracts exist, the one about the domain among them, and the linter finds all of them kept."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    domain = [item for item in linter["contracts"] if item["name"] == _CONTRACT]
    sources = [item["source_modules"] for item in domain]
    require(holds=sources == [["footplate.domain"]], otherwise="there is no contract for the domain")
    output = await _run(str(Path(sys.executable).parent / "lint-imports"), "--no-cache")
    counted = re.search(r"Contracts: (\d+) kept, 0 broken", output)
    if counted is None or f"{_CONTRACT} KEPT" not in output:
        raise NotHeld(f"the import linter does not say that all is kept: {output}")
    return int(counted[1])


def _sizes() -> tuple[int, int]:
    lengths = [
        len(path.read_text().splitlines())
        for path in house.SOURCE.rglob("*")
        if path.suffix in {".py", ".sql"} and path.is_file()
    ]
    return len(lengths), max(lengths)


def _pure_domain() -> None:
    """What the contract cannot see: the standard library's own ways out, and builtins."""
    for path in sorted(DOMAIN.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            imported: list[str] = []
            if isinstance(node, ast.Import):
                imported = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                imported = [node.module or ""]
            foreign = [name for name in imported if name.split(".")[0] not in _MAY_IMPORT]
            require(holds=not foreign, otherwise=f"{path.name} of the domain imports {foreign}")
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            require(holds=called not in _MAY_NOT_CALL, otherwise=f"{path.name} of the domain calls {called}")


async def _outside() -> None:
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        target = Path(directory) / "installed"
        await out_of_tree.install(target)
        async with open_cluster(environment=out_of_tree.environment(target)) as cluster:
            await out_of_tree.run_turns(cluster, Ledger())


async def _ci() -> float:
    """CI's own seconds, in a clone that has nothing of this checkout but the last commit."""
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        clone = Path(directory) / "footplate"
        await _run("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone))
        passed = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
        started = time.monotonic()
        # A little more than the limit, so that a miss is measured rather than cut off.
        await _run(str(clone / ".ci" / "run"), directory=clone, environment=_without_venv(passed), limit=2 * _CI_LIMIT)
        return time.monotonic() - started


def _without_venv(environment: Mapping[str, str]) -> dict[str, str]:
    """CI makes an environment of its own; the programs of this one must not stand in for it."""
    own = Path(sys.executable).parent
    path = [part for part in environment["PATH"].split(os.pathsep) if Path(part) != own]
    uv = shutil.which("uv")
    return {**environment, "PATH": os.pathsep.join([*path, *([str(Path(uv).parent)] if uv else [])])}


async def _run(
    *argv: str, directory: Path = ROOT, environment: Mapping[str, str] | None = None, limit: float = 300
) -> str:
    """What it prints; the proof fails when it does. A group of its own, so that its end is the end of all of it."""
    given = {"PATH": os.environ["PATH"], "HOME": str(Path.home())} if environment is None else environment
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=directory,
        env=given,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(limit):
            output, _ = await process.communicate()
    except TimeoutError:
        raise NotHeld(f"{Path(argv[0]).name} did not end in {limit:.0f} s") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    text = output.decode(errors="replace")
    require(holds=process.returncode == 0, otherwise=f"{' '.join(argv[1:] or argv)} failed:\n{text[-3000:]}")
    return text
