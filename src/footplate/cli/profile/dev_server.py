"""Records and finds the `footplate dev` process that runs on this machine, through files in its data directory.

`dev.json` contains the addresses of the services, and `api-key` the API key that the first start created. Only the
owner can read these files. A killed launcher leaves `dev.json` behind, and another user may have forged one. The file
is therefore used only while the processes that it names run and listen at its addresses.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from footplate.cli.profile import dev_server_check
from footplate.cli.profile.xdg_paths import write_private

if TYPE_CHECKING:
    from footplate.config import Settings

_DEV_FILE: Final = "dev.json"
_KEY_FILE: Final = "api-key"
_SHARED_SETTINGS: Final = ("database_url", "redis_url", "temporal_address")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningDevServer:
    pid: int
    started: int
    """Start time of that process, because its id may be reused."""
    api_pid: int
    """The process that listens at `base_url`."""
    database_url: str
    redis_url: str
    temporal_address: str
    base_url: str
    model: str = ""
    """The default model for commands that name none."""
    providers: str = ""
    """The providers whose models its workers can call; `scripted model` if it plays a scenario."""


def publish_dev_server(directory: Path, running: RunningDevServer) -> None:
    write_private(directory / _DEV_FILE, json.dumps(asdict(running)))


def withdraw_dev_server(directory: Path) -> None:
    (directory / _DEV_FILE).unlink(missing_ok=True)


def find_dev_server(directory: Path) -> RunningDevServer | None:
    path = directory / _DEV_FILE
    if not dev_server_check.is_private(path):
        return None
    try:
        running = RunningDevServer(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return running if _is_genuine(running) else None


def _is_genuine(running: RunningDevServer) -> bool:
    return (
        running.started != 0
        and dev_server_check.start_time(running.pid) == running.started
        and dev_server_check.is_child(running.api_pid, running.pid)
        and dev_server_check.listens(running.api_pid, running.base_url)
    )


def load_api_key(directory: Path) -> str | None:
    try:
        return (directory / _KEY_FILE).read_text().strip() or None
    except OSError:
        return None


def save_api_key(directory: Path, secret: str) -> None:
    write_private(directory / _KEY_FILE, f"{secret}\n")


def load_settings() -> "Settings":
    """Reads the settings from the environment, with missing addresses from a `footplate dev` on this machine."""
    own_settings = read_settings()
    running = find_dev_server(own_settings.data_dir)
    if running is None:
        return own_settings
    missing = [name for name in _SHARED_SETTINGS if name not in own_settings.model_fields_set]
    return own_settings.model_copy(update={name: getattr(running, name) for name in missing})


def read_settings(**overrides: Any) -> "Settings":
    """Raises `InvalidRequest` with the name of an invalid variable, but not its value, which may be a secret."""
    from pydantic import ValidationError

    from footplate.config import Settings
    from footplate.domain.errors import InvalidRequest

    try:
        return Settings(**overrides)
    except ValidationError as error:
        problems = [
            _describe_error(each["loc"], each["msg"]) for each in error.errors(include_input=False, include_url=False)
        ]
        raise InvalidRequest(
            f"A setting is invalid. {' '.join(problems)}",
            help_text="Correct or unset this environment variable and run the command again.",
        ) from None


def _describe_error(location: tuple[int | str, ...], message: str) -> str:
    name = str(location[0]).upper() if location else ""
    variable = name if name.startswith("FOOTPLATE_") or not name else f"FOOTPLATE_{name}"
    return f"{variable}{': ' if variable else ''}{message.removeprefix('Value error, ')}"
