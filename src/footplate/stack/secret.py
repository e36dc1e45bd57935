"""A server's password, made at its first start and kept in a file that only its owner reads.

The servers listen on loopback, where every user of the machine could connect: a password keeps them out.
"""

import secrets
from pathlib import Path


def password(directory: Path) -> str:
    path = directory / "password"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    value = secrets.token_hex(24)
    # Written aside and renamed: a launcher that is killed here leaves no empty password behind.
    draft = path.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.write_text(f"{value}\n")
    draft.replace(path)
    return value
