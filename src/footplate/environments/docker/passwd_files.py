"""Writes a container's `/etc/passwd` and `/etc/group`: the entries of the image, and one entry for the agent's user.

Many programs fail if their user has no entry.
"""

import os
import tempfile
from pathlib import Path
from typing import Final

from footplate.environments.isolation.filesystem_view import HOME_MOUNT

PASSWD_PATH: Final = "/etc/passwd"  # noqa: S105 - a path
GROUP_PATH: Final = "/etc/group"
AGENT_NAME: Final = "agent"


def write_user_files(
    directory: Path, image: str, image_files: dict[str, str], user: tuple[int, int]
) -> dict[str, Path]:
    """Returns the files by their path inside. They are retained between turns, because running containers
    mount them.
    """
    uid, gid = user
    lines = {
        PASSWD_PATH: (uid, f"{AGENT_NAME}:x:{uid}:{gid}::{HOME_MOUNT}:/bin/sh\n"),
        GROUP_PATH: (gid, f"{AGENT_NAME}:x:{gid}:\n"),
    }
    found = {}
    for target, (number, line) in lines.items():
        path = directory / f"{image.removeprefix('sha256:')[:16]}-{uid}-{gid}-{Path(target).name}"
        if not path.exists():
            _write(path, add_entry(image_files.get(target, ""), number, line))
        found[target] = path
    return found


def add_entry(text: str, number: int, line: str) -> str:
    """Adds a line unless the text already has an entry for the id, which is then kept."""
    ids = [fields[2] for fields in (entry.split(":") for entry in text.splitlines()) if len(fields) > 2]  # noqa: PLR2004
    if str(number) in ids:
        return text
    return text + ("" if not text or text.endswith("\n") else "\n") + line


def _write(path: Path, text: str) -> None:
    """Writes the file atomically, because other tasks may write the same file."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False) as file:
        file.write(text)
        os.fchmod(file.fileno(), 0o644)
    Path(file.name).replace(path)
