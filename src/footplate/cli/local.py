"""What a running `footplate dev` leaves in its data directory, so that other commands find it.

`dev.json` says where the parts are, `api-key` holds the key that was made at the first start. Both are readable by
their owner alone. A launcher that was killed leaves its `dev.json` behind: it counts only while its process lives.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from footplate.config import Settings

_FILE: Final = "dev.json"
_KEY: Final = "api-key"
_SHARED: Final = ("database_url", "redis_url", "temporal_address")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    pid: int
    database_url: str
    redis_url: str
    temporal_address: str
    base_url: str


def publish(directory: Path, running: Running) -> None:
    write_private(directory / _FILE, json.dumps(asdict(running)))


def withdraw(directory: Path) -> None:
    (directory / _FILE).unlink(missing_ok=True)


def find(directory: Path) -> Running | None:
    try:
        running = Running(**json.loads((directory / _FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return running if Path(f"/proc/{running.pid}").exists() else None


def key(directory: Path) -> str | None:
    try:
        return (directory / _KEY).read_text().strip() or None
    except OSError:
        return None


def keep_key(directory: Path, secret: str) -> None:
    write_private(directory / _KEY, f"{secret}\n")


def settings() -> Settings:
    """From the environment; what it does not say, from a `footplate dev` that runs on this machine."""
    read = Settings()
    running = find(read.data_dir)
    if running is None:
        return read
    missing = [name for name in _SHARED if name not in read.model_fields_set]
    return read.model_copy(update={name: getattr(running, name) for name in missing})


def write_private(path: Path, text: str) -> None:
    """Aside and renamed, so that a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.new")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w") as handle:
        handle.write(text)
    draft.replace(path)
