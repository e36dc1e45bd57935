"""Creates a Docker build context from programs and libraries on this machine, so that tests need no image registry."""

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
DEFAULT_PROGRAMS: Final = (
    "awk", "basename", "bash", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dirname", "du", "echo", "env",
    "expr", "false", "find", "grep", "head", "hostname", "id", "kill", "ln", "ls", "mkdir", "mkfifo", "mknod", "mktemp",
    "mount", "mv", "nohup", "printf", "ps", "pwd", "readlink", "rm", "rmdir", "sed", "seq", "setsid", "sh", "sleep",
    "sort", "stat", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true", "umount", "uname", "unshare", "wc",
    "whoami", "xargs", "yes",
)  # fmt: skip
"""Programs that scripts expect on any system."""


def build_context(
    programs: Iterable[str] = DEFAULT_PROGRAMS,
    *,
    files: Mapping[str, bytes] | None = None,
    instructions: Iterable[str] = (),
) -> bytes:
    """Returns a tar for `docker build`, with a Dockerfile. `files` maps paths in the image to content."""
    rootfs = io.BytesIO()
    with tarfile.open(fileobj=rootfs, mode="w") as tar:
        for directory in ("tmp", "etc", "root", "proc", "sys", "dev"):
            _add_directory(tar, directory, 0o1777 if directory == "tmp" else 0o755)
        for path, source in sorted(_find_files(programs).items()):
            tar.add(source, path.lstrip("/"), recursive=False, filter=_owned_by_root)
        for path, content in (files or {}).items():
            _add(tar, path.lstrip("/"), content)
    dockerfile = "\n".join(["FROM scratch", "ADD rootfs.tar /", f"ENV PATH={_PATH}", *instructions])
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        _add(tar, "Dockerfile", dockerfile.encode())
        _add(tar, "rootfs.tar", rootfs.getvalue())
    return archive.getvalue()


def _find_files(programs: Iterable[str]) -> dict[str, str]:
    """Maps each path in the image to the file on this machine."""
    found = {}
    for name in programs:
        path = shutil.which(name, path=_PATH)
        if path is None:
            raise FileNotFoundError(f"the program {name} is not installed on this machine")
        found[f"/bin/{name}"] = str(Path(path).resolve())
        for library in _libraries(path):
            found[library] = str(Path(library).resolve())
    return found


def _libraries(program: str) -> list[str]:
    listed = subprocess.run(["ldd", program], check=False, capture_output=True, text=True).stdout
    return [token for line in listed.splitlines() for token in line.split() if token.startswith("/")]


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    return member


def _add(tar: tarfile.TarFile, path: str, content: bytes) -> None:
    member = tarfile.TarInfo(path)
    member.size, member.mode = len(content), 0o755
    tar.addfile(member, io.BytesIO(content))


def _add_directory(tar: tarfile.TarFile, path: str, mode: int) -> None:
    member = tarfile.TarInfo(path)
    member.type, member.mode = tarfile.DIRTYPE, mode
    tar.addfile(member)
