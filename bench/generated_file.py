"""Writes a generated file, or checks that the committed one is up to date."""

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def write_or_check(path: Path, text: str, *, recipe: str) -> None:
    """Writes the file. With `--check` on the command line it writes nothing, and exits with 1 if the file differs."""
    name = path.relative_to(ROOT).as_posix()
    if "--check" not in sys.argv:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        sys.exit(f"{name} is out of date. Run `just {recipe}`, review the change and commit it.")
    sys.stdout.write(f"{name} is up to date.\n")
