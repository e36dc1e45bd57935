"""The worker's own interpreter, in a directory that any container can mount: an image needs no Python, nor a libc.

What the first process in a container needs is a few modules and libraries of this very interpreter. Which, it says
itself: it is asked what it has loaded. They are copied beside the dynamic loader that fits them, which is then started
by name, so that nothing of the image is used: not its libraries, be they musl or older, and not its Python.

A copy and not mounts of the originals: whoever shares a directory with the engine, a worker in a container for one,
has to share this one only; and it stays what it was when the system is upgraded under a running worker.
"""

import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent

TARGET: Final = "/run/footplate"
_CODE: Final = Path(__file__).parents[1]
_OURS: Final = ("guardian_main", "guardian_tree", "inside_doors", "inside_main", "plain_files", "docker/container_main")
_LIBRARIES: Final = "lib"
_FILTERS: Final = "filters"
COMMANDS: Final = "commands"
SETUP: Final = "setup"
_NEVER_CHECKED: Final = py_compile.PycInvalidationMode.UNCHECKED_HASH
_START: Final = "import container_main; container_main.main()"
_ASK: Final = """
import sys
sys.path[:0] = sys.argv[1:]
import container_main, warnings, encodings.ascii, encodings.latin_1
print("\\n".join(module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)))
with open("/proc/self/maps") as maps:
    print("\\n".join({line.split(None, 5)[5].strip() for line in maps if ".so" in line}))
"""
"""Beside what it imports: what `os` and the interpreter itself import only when they come to need it."""


@dataclass(frozen=True, slots=True)
class Runtime:
    place: Path
    """On the host. Mounted as `TARGET`."""
    loader: str
    """Its name; every architecture has another."""

    def command(self, at: str, arguments: Sequence[str], *, filters: str = COMMANDS) -> list[str]:
        """`at`: where it is seen. The libraries are for this program alone: no variable hands them on."""
        loader, libraries, python = (
            f"{at}/{name}" for name in (f"{_LIBRARIES}/{self.loader}", _LIBRARIES, "bin/python")
        )
        options = ("-I", "-S", "-B", "-X", "utf8", "-c", _START)
        return [loader, "--library-path", libraries, python, *options, f"{at}/{_FILTERS}/{filters}", *arguments]


def prepare(parent: Path, filters: Mapping[str, Sequence[bytes]]) -> Runtime:
    """Made once for each version of what goes into it; who is killed meanwhile leaves a temporary directory.

    `filters`: programs of seccomp, by what they are for: the first process has the kernel hold it and all that it
    starts to them.
    """
    interpreter = Path(os.path.realpath(sys.executable))
    asked = subprocess.run(
        [interpreter, "-I", "-S", "-c", _ASK, str(_CODE), str(_CODE / "docker")],
        check=True, capture_output=True, cwd="/", env={},
    )  # fmt: skip
    stdlib = Path(os.__file__).parent
    files = {Path(line) for line in asked.stdout.decode().splitlines() if line}
    modules = {file for file in files if stdlib in file.parents}
    libraries = {file for file in files - modules if ".so" in file.name}
    loader = next((path.name for path in libraries if path.name.startswith(("ld-", "ld64"))), None)
    if loader is None:
        raise Permanent("The docker environment needs a Python that is linked dynamically, with glibc.")
    own = [_CODE / f"{name}.py" for name in _OURS]
    place = parent / _digest(
        [interpreter, *sorted(libraries), *sorted(modules), *own],
        [program for programs in filters.values() for program in programs],
    )
    if not place.is_dir():
        parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".", dir=parent))
        try:
            _fill(temporary, interpreter, stdlib, modules, libraries, own)
            _write_filters(temporary / _FILTERS, filters)
            temporary.chmod(0o755)
            temporary.rename(place)
        except OSError:
            if not place.is_dir():  # else somebody else was faster
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return Runtime(place, loader)


def _digest(files: Sequence[Path], contents: Sequence[bytes]) -> str:
    digest = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents))
    for file in files:
        status = file.stat()
        digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]


def _fill(
    place: Path, interpreter: Path, stdlib: Path, modules: set[Path], libraries: set[Path], own: Sequence[Path]
) -> None:
    home = place / "lib" / stdlib.name
    _copy(interpreter, place / "bin" / "python")
    for module in modules:
        target = home / module.relative_to(stdlib)
        _copy(module, target)
    (home / "lib-dynload").mkdir(exist_ok=True)
    for module in own:
        _copy(module, home / module.name)
    for module in home.rglob("*.py"):
        seen = f"{TARGET}/{module.relative_to(place)}"
        py_compile.compile(str(module), dfile=seen, doraise=True, invalidation_mode=_NEVER_CHECKED)
    for library in libraries:
        _copy(library, place / _LIBRARIES / library.name)
        for other in library.parent.iterdir():  # the name by which it is asked for is often a link
            if other.is_symlink() and other.resolve() == library.resolve():
                (place / _LIBRARIES / other.name).symlink_to(library.name)


def _write_filters(place: Path, filters: Mapping[str, Sequence[bytes]]) -> None:
    for name, programs in filters.items():
        (place / name).mkdir(parents=True)
        for number, content in enumerate(programs):
            (place / name / str(number)).write_bytes(content)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
