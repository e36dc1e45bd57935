"""Creates a server's password at its first start, and stores it in a file that only its owner can read.

The servers listen on loopback, where every user of the machine can connect. The password keeps other users out.
"""

import secrets
from pathlib import Path


def load_or_create_password(directory: Path) -> str:
    path = directory / "password"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    value = secrets.token_hex(24)
    # Written to a draft file and renamed, so that a crash leaves no empty password file.
    draft = path.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.write_text(f"{value}\n")
    draft.replace(path)
    return value
