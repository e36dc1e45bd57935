"""Who the agent is in a container: the image's own users, and one line for its uid. Many programs insist on a name."""

import os
import tempfile
from pathlib import Path
from typing import Final

from footplate.environments.sandbox.view import HOME

PASSWD: Final = "/etc/passwd"  # noqa: S105 - a path
GROUP: Final = "/etc/group"
NAME: Final = "agent"


def files(directory: Path, image: str, texts: dict[str, str], user: tuple[int, int]) -> dict[str, Path]:
    """By where they are seen. Kept from turn to turn: a container that runs has them mounted."""
    uid, gid = user
    lines = {PASSWD: (uid, f"{NAME}:x:{uid}:{gid}::{HOME}:/bin/sh\n"), GROUP: (gid, f"{NAME}:x:{gid}:\n")}
    found = {}
    for target, (number, line) in lines.items():
        path = directory / f"{image.removeprefix('sha256:')[:16]}-{uid}-{gid}-{Path(target).name}"
        if not path.exists():
            _write(path, with_line(texts.get(target, ""), number, line))
        found[target] = path
    return found


def with_line(text: str, number: int, line: str) -> str:
    """A uid that the image has a name for keeps it."""
    ids = [fields[2] for fields in (entry.split(":") for entry in text.splitlines()) if len(fields) > 2]  # noqa: PLR2004
    if str(number) in ids:
        return text
    return text + ("" if not text or text.endswith("\n") else "\n") + line


def _write(path: Path, text: str) -> None:
    """Whole or not at all, though others may be writing the same."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False) as file:
        file.write(text)
        os.fchmod(file.fileno(), 0o644)
    Path(file.name).replace(path)
