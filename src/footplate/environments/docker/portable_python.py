"""Copies the worker's Python interpreter and its libraries into a directory that is mounted into containers.

The init process of a container runs with this copy, so an image needs neither Python nor glibc. The copy contains its
own dynamic loader, which is started explicitly, so no library of the image is loaded.

The original files are not mounted, for two reasons. If the worker itself runs in a container, all their directories
would have to be shared with Docker. A system upgrade could replace the files while the worker runs.
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

MOUNT_TARGET: Final = "/run/footplate"
_PROGRAMS_DIRECTORY: Final = Path(__file__).parents[1] / "programs"
_PROGRAM_MODULES: Final = (
    "container_init",
    "safe_file_access",
    "guardian_main",
    "init_process",
    "loopback_port_forwarder",
    "process_tree",
)
_LIBRARIES: Final = "lib"
_FILTERS: Final = "filters"
COMMAND_FILTERS: Final = "commands"
SETUP_FILTERS: Final = "setup"
_NEVER_CHECKED: Final = py_compile.PycInvalidationMode.UNCHECKED_HASH
_START_CODE: Final = "import container_init; container_init.main()"
_LIST_LOADED_FILES: Final = """
import sys
sys.path[:0] = sys.argv[1:]
import container_init, warnings, encodings.ascii, encodings.latin_1
print("\\n".join(module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)))
with open("/proc/self/maps") as maps:
    print("\\n".join({line.split(None, 5)[5].strip() for line in maps if ".so" in line}))
"""
"""Also imports modules that `os` and the interpreter load only on demand."""


@dataclass(frozen=True, slots=True)
class PortablePython:
    directory: Path
    """The host path, which is mounted at `MOUNT_TARGET`."""
    loader: str
    """The file name of the dynamic loader, which depends on the architecture."""

    def build_command(self, mounted_at: str, arguments: Sequence[str], *, filters: str = COMMAND_FILTERS) -> list[str]:
        """Returns the command line. `mounted_at` is the path inside. Only this program uses the libraries: no
        variable passes them on.
        """
        loader, libraries, python = (
            f"{mounted_at}/{name}" for name in (f"{_LIBRARIES}/{self.loader}", _LIBRARIES, "bin/python")
        )
        options = ("-I", "-S", "-B", "-X", "utf8", "-c", _START_CODE)
        return [loader, "--library-path", libraries, python, *options, f"{mounted_at}/{_FILTERS}/{filters}", *arguments]


def prepare_python(parent: Path, filters: Mapping[str, Sequence[bytes]]) -> PortablePython:
    """Creates the copy once for each version of its content. If the worker is killed meanwhile, a
    temporary directory remains.

    A trial run of the interpreter lists the modules and libraries that the init process loads. Only these are copied.
    `filters` are the seccomp programs by purpose. The init process applies them to itself and to all its children.
    """
    interpreter = Path(os.path.realpath(sys.executable))
    listing = subprocess.run(
        [interpreter, "-I", "-S", "-c", _LIST_LOADED_FILES, str(_PROGRAMS_DIRECTORY)],
        check=True, capture_output=True, cwd="/", env={},
    )  # fmt: skip
    stdlib = Path(os.__file__).parent
    files = {Path(line) for line in listing.stdout.decode().splitlines() if line}
    modules = {file for file in files if stdlib in file.parents}
    libraries = {file for file in files - modules if ".so" in file.name}
    loader = next((path.name for path in libraries if path.name.startswith(("ld-", "ld64"))), None)
    if loader is None:
        raise Permanent("The docker environment requires a Python interpreter that is dynamically linked with glibc.")
    program_files = [_PROGRAMS_DIRECTORY / f"{name}.py" for name in _PROGRAM_MODULES]
    directory = parent / _digest(
        [interpreter, *sorted(libraries), *sorted(modules), *program_files],
        [program for programs in filters.values() for program in programs],
    )
    if not directory.is_dir():
        parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".", dir=parent))
        try:
            _copy_files(temporary, interpreter, stdlib, modules, libraries, program_files)
            _write_filters(temporary / _FILTERS, filters)
            temporary.chmod(0o755)
            temporary.rename(directory)
        except OSError:
            if not directory.is_dir():  # otherwise another worker was faster
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return PortablePython(directory, loader)


def _digest(files: Sequence[Path], contents: Sequence[bytes]) -> str:
    digest = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents))
    for file in files:
        status = file.stat()
        digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]


def _copy_files(
    directory: Path,
    interpreter: Path,
    stdlib: Path,
    modules: set[Path],
    libraries: set[Path],
    program_files: Sequence[Path],
) -> None:
    home = directory / "lib" / stdlib.name
    _copy(interpreter, directory / "bin" / "python")
    for module in modules:
        target = home / module.relative_to(stdlib)
        _copy(module, target)
    (home / "lib-dynload").mkdir(exist_ok=True)
    for module in program_files:
        _copy(module, home / module.name)
    for module in home.rglob("*.py"):
        path_inside = f"{MOUNT_TARGET}/{module.relative_to(directory)}"
        py_compile.compile(str(module), dfile=path_inside, doraise=True, invalidation_mode=_NEVER_CHECKED)
    for library in libraries:
        _copy(library, directory / _LIBRARIES / library.name)
        for other in library.parent.iterdir():  # programs often load it by a symbolic link
            if other.is_symlink() and other.resolve() == library.resolve():
                (directory / _LIBRARIES / other.name).symlink_to(library.name)


def _write_filters(directory: Path, filters: Mapping[str, Sequence[bytes]]) -> None:
    for name, programs in filters.items():
        (directory / name).mkdir(parents=True)
        for number, content in enumerate(programs):
            (directory / name / str(number)).write_bytes(content)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
