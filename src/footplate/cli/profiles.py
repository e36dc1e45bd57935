"""Loads and saves server profiles, and selects the server that a command uses.

The first match wins: `--profile`, `FOOTPLATE_BASE_URL`, the profile selected with `config use`, a `footplate dev` on
this machine. The last one is also the profile named `local`.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from footplate.cli import local, places

LOCAL: Final = "local"
KEYS: Final = ("base_url", "api_key", "model", "harness", "agent", "environment")


class NoServer(Exception):
    """No server could be selected. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Config:
    current: str | None = None
    profiles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Server:
    base_url: str
    api_key: str
    source: str
    """Where the address was found, for messages."""
    model: str | None = None
    harness: str | None = None
    agent: str | None = None
    environment: str | None = None
    is_here: bool = False
    """True for a `footplate dev` on this machine, which sees the same directories as the command line."""


def load() -> Config:
    try:
        data = json.loads(places.config_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        raise NoServer(f"{places.config_file()} cannot be read: {error}. Fix or delete the file.") from None
    profiles = {
        str(name): {key: str(value) for key, value in fields.items() if key in KEYS}
        for name, fields in data.get("profiles", {}).items()
    }
    return Config(data.get("current"), profiles)


def save(config: Config) -> None:
    data = {"current": config.current, "profiles": {name: dict(fields) for name, fields in config.profiles.items()}}
    places.write_private(places.config_file(), json.dumps(data, indent=2) + "\n")


def server(profile: str | None = None) -> Server:
    profile = profile or os.environ.get("FOOTPLATE_PROFILE") or None
    if profile is None and (base_url := os.environ.get("FOOTPLATE_BASE_URL")):
        return _of("FOOTPLATE_BASE_URL", {"base_url": base_url})
    config = load()
    chosen = profile or config.current
    if chosen is None or chosen == LOCAL:
        return local_server(wanted=chosen is not None)
    if chosen not in config.profiles:
        known = ", ".join([*config.profiles, LOCAL])
        raise NoServer(
            f"There is no profile {chosen!r}. Known profiles: {known}. Create one with `footplate config set`."
        )
    return _of(f"profile {chosen}", config.profiles[chosen])


def _of(source: str, fields: Mapping[str, str]) -> Server:
    if not fields.get("base_url"):
        raise NoServer(f"The {source} has no base_url. Set it with `footplate config set base_url URL`.")
    api_key = os.environ.get("FOOTPLATE_API_KEY") or fields.get("api_key")
    if not api_key:
        raise NoServer(f"No API key for the {source}. Set FOOTPLATE_API_KEY, or run `footplate config set api_key`.")
    running = _here(fields["base_url"])
    return Server(
        fields["base_url"],
        api_key,
        source,
        model=os.environ.get("FOOTPLATE_MODEL") or fields.get("model") or (running.model if running else None) or None,
        harness=os.environ.get("FOOTPLATE_HARNESS") or fields.get("harness"),
        agent=fields.get("agent"),
        environment=fields.get("environment"),
        is_here=running is not None,
    )


def _here(base_url: str) -> local.Running | None:
    running = local.find(places.data_dir())
    return running if running is not None and running.base_url == base_url.rstrip("/") else None


def local_server(*, wanted: bool = True) -> Server:
    directory = places.data_dir()
    running, secret = local.find(directory), local.key(directory)
    if running is None or secret is None:
        other = "" if wanted else ", or configure a server with `footplate config set base_url URL`"
        raise NoServer(f"No `footplate dev` is running on this machine. Start one in another terminal{other}.")
    model = os.environ.get("FOOTPLATE_MODEL") or running.model or None
    harness = os.environ.get("FOOTPLATE_HARNESS") or None
    return Server(running.base_url, secret, "footplate dev", model=model, harness=harness, is_here=True)
