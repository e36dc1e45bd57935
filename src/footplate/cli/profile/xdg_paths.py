"""Paths of the command line's files: in the XDG directories, or in APPDATA on Windows.

`footplate.config` computes the data directory in the same way. The code is duplicated here, because loading the
settings is too slow for shell completion.
"""

import os
from pathlib import Path


def data_dir() -> Path:
    given = os.environ.get("FOOTPLATE_DATA_DIR")
    return Path(given) if given else _base_dir("XDG_DATA_HOME", ".local/share")


def config_file() -> Path:
    return _base_dir("XDG_CONFIG_HOME", ".config") / "config.json"


def state_file() -> Path:
    """Returns the file for disposable state: the last used agent and session."""
    return _base_dir("XDG_STATE_HOME", ".local/state") / "cli.json"


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner can read. It is renamed into place, so readers never see a partial file."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as handle:
        handle.write(text)
    draft.replace(path)


def _base_dir(variable: str, default: str) -> Path:
    directory = os.environ.get(variable)
    if not directory and os.name == "nt":
        directory = os.environ.get("APPDATA")
    return Path(directory or Path.home() / default) / "footplate"
