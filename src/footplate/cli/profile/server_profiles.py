"""Loads and saves server profiles, and selects the server that a command uses.

The first match is used: `--profile` or `FOOTPLATE_PROFILE`, `FOOTPLATE_BASE_URL`, the profile selected with `config
use`, or a running `footplate dev` on this machine. The running `footplate dev` is also available as the profile
`local`.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from footplate.cli.profile import dev_server, xdg_paths

LOCAL_PROFILE: Final = "local"
PROFILE_KEYS: Final = ("base_url", "api_key", "model", "harness", "agent", "environment", "timeout")


class NoServerSelected(Exception):
    """No server could be selected. The message says what to do."""


@dataclass(frozen=True, slots=True)
class ProfileConfig:
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
    timeout: str | None = None
    """Seconds after which `run` interrupts a turn. `0`: never."""
    is_local: bool = False
    """True for a `footplate dev` on this machine, which sees the same directories as the command line."""


def load_config() -> ProfileConfig:
    try:
        data = json.loads(xdg_paths.config_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ProfileConfig()
    except (OSError, ValueError) as error:
        raise NoServerSelected(f"{xdg_paths.config_file()} cannot be read: {error}. Fix or delete the file.") from None
    profiles = {
        str(name): {key: str(value) for key, value in fields.items() if key in PROFILE_KEYS}
        for name, fields in data.get("profiles", {}).items()
    }
    return ProfileConfig(data.get("current"), profiles)


def save_config(config: ProfileConfig) -> None:
    data = {"current": config.current, "profiles": {name: dict(fields) for name, fields in config.profiles.items()}}
    xdg_paths.write_private(xdg_paths.config_file(), json.dumps(data, indent=2) + "\n")


def select_server(profile: str | None = None) -> Server:
    profile = profile or os.environ.get("FOOTPLATE_PROFILE") or None
    if profile is None and (base_url := os.environ.get("FOOTPLATE_BASE_URL")):
        return _server_from_fields("FOOTPLATE_BASE_URL", {"base_url": base_url})
    config = load_config()
    chosen = profile or config.current
    if chosen is None or chosen == LOCAL_PROFILE:
        return local_server(is_explicit=chosen is not None)
    if chosen not in config.profiles:
        known = ", ".join([*config.profiles, LOCAL_PROFILE])
        raise NoServerSelected(
            f"There is no profile {chosen!r}. Known profiles: {known}. Create one with `footplate config set`."
        )
    return _server_from_fields(f"the profile {chosen!r}", config.profiles[chosen])


def _server_from_fields(source: str, fields: Mapping[str, str]) -> Server:
    if not fields.get("base_url"):
        raise NoServerSelected(f"There is no base_url in {source}. Set it with `footplate config set base_url URL`.")
    api_key = os.environ.get("FOOTPLATE_API_KEY") or fields.get("api_key")
    if not api_key:
        raise NoServerSelected(
            f"There is no API key for the server in {source}. Sign in with `footplate login`, run "
            "`footplate config set api_key`, or set FOOTPLATE_API_KEY."
        )
    running = _find_local_server(fields["base_url"])
    return Server(
        fields["base_url"],
        api_key,
        source,
        model=os.environ.get("FOOTPLATE_MODEL") or fields.get("model") or (running.model if running else None) or None,
        harness=os.environ.get("FOOTPLATE_HARNESS") or fields.get("harness"),
        agent=fields.get("agent"),
        environment=fields.get("environment"),
        timeout=os.environ.get("FOOTPLATE_RUN_TIMEOUT") or fields.get("timeout"),
        is_local=running is not None,
    )


def parse_timeout(text: str) -> float | None:
    """Returns the seconds of a timeout. None: the text is not a valid timeout."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _find_local_server(base_url: str) -> dev_server.RunningDevServer | None:
    running = dev_server.find_dev_server(xdg_paths.data_dir())
    return running if running is not None and running.base_url == base_url.rstrip("/") else None


def local_server(*, is_explicit: bool = True) -> Server:
    directory = xdg_paths.data_dir()
    running, secret = dev_server.find_dev_server(directory), dev_server.load_api_key(directory)
    if running is None or secret is None:
        other = "" if is_explicit else ", or configure a server with `footplate config set base_url URL`"
        raise NoServerSelected(f"No `footplate dev` is running on this machine. Start one in another terminal{other}.")
    model = os.environ.get("FOOTPLATE_MODEL") or running.model or None
    harness = os.environ.get("FOOTPLATE_HARNESS") or None
    timeout = os.environ.get("FOOTPLATE_RUN_TIMEOUT") or None
    source = "`footplate dev`"
    return Server(running.base_url, secret, source, model=model, harness=harness, timeout=timeout, is_local=True)
