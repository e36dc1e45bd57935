"""Stores ids for each server in a file: the agent and environment that the command line created, and the last used
session and batch.

If the file is lost, the ids are looked up or created again. An id that the server no longer knows is removed.
"""

import json
from contextlib import suppress
from typing import Final, Literal

from footplate.cli.profile import xdg_paths

IdKind = Literal["agent", "environment", "session", "batch"]
_MAX_SERVERS: Final = 50


def recall_id(base_url: str, kind: IdKind) -> str | None:
    return _load().get(base_url, {}).get(kind)


def remember_ids(base_url: str, **ids: str) -> None:
    servers = _load()
    servers[base_url] = {**servers.pop(base_url, {}), **ids}
    recent = dict(list(servers.items())[-_MAX_SERVERS:])
    with suppress(OSError):  # if the home directory is read-only, the id is looked up again next time
        xdg_paths.write_private(xdg_paths.state_file(), json.dumps(recent, indent=2) + "\n")


def forget_ids(base_url: str, *kinds: IdKind) -> None:
    remember_ids(base_url, **dict.fromkeys(kinds, ""))


def _load() -> dict[str, dict[str, str]]:
    try:
        data = json.loads(xdg_paths.state_file().read_text(encoding="utf-8"))
        return {str(url): {str(noun): str(item) for noun, item in ids.items()} for url, ids in data.items()}
    except (OSError, ValueError, AttributeError):
        return {}
