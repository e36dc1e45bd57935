"""Reads settings from environment variables, from files that hold one secret each, and from a settings file.

`FOOTPLATE_TEMPORAL__ADDRESS` is another name of `FOOTPLATE_TEMPORAL_ADDRESS`, and in the settings file, it is `address`
in the table `temporal`. `FOOTPLATE_DATABASE_URL_FILE` names a file with the value of `FOOTPLATE_DATABASE_URL`.
"""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic_settings import EnvSettingsSource

from footplate.domain.errors import InvalidRequest

PREFIX: Final = "footplate_"
SETTINGS_FILE: Final = "FOOTPLATE_SETTINGS_FILE"
_FILE_SUFFIX: Final = "_file"


class EnvironmentSource(EnvSettingsSource):
    def _load_env_vars(self) -> Mapping[str, str | None]:
        return resolve_variables(super()._load_env_vars(), self.settings_cls.model_fields)


def resolve_variables(variables: Mapping[str, str | None], fields: Collection[str]) -> dict[str, str | None]:
    """Returns the variables under the names of the settings, in lower case. Raises `InvalidRequest` if two variables
    set the same one.
    """
    resolved: dict[str, str | None] = {}
    given_by: dict[str, str] = {}
    for variable, given in variables.items():
        name, value = variable.lower(), given
        if name.startswith(PREFIX):
            field, has_file_name = _find_field(name.removeprefix(PREFIX), fields)
            name = PREFIX + field
            if name in given_by:
                first, second = sorted((given_by[name].upper(), variable.upper()))
                raise InvalidRequest(
                    f"{first} and {second} are the same setting, and both are set.", help_text="Unset one of them."
                )
            given_by[name] = variable
            if has_file_name:
                value = _read_value(variable.upper(), given or "")
        resolved[name] = value
    return resolved


def without_settings(variables: Mapping[str, str], taken: Collection[str], fields: Collection[str]) -> dict[str, str]:
    """Returns the variables except those that set, under any name, what the variables in `taken` set."""
    names = {name.lower().removeprefix(PREFIX) for name in taken}
    return {
        name: value
        for name, value in variables.items()
        if _find_field(name.lower().removeprefix(PREFIX), fields)[0] not in names
    }


def load_settings_file(path: Path, fields: Collection[str]) -> dict[str, Any]:
    """Returns the settings of a TOML file by name. Raises `InvalidRequest` if the file has anything else."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"The settings file {path} cannot be read: {_reason(error)}.",
            help_text=f"Correct the file, or {SETTINGS_FILE}, which names it.",
        ) from None
    found: dict[str, Any] = {}
    for shown, name, value in _iter_keys(content, fields):
        field, has_file_name = _find_field(name, fields)
        if field not in fields or field in found:
            problem = "is not a setting" if field not in fields else "is set twice"
            raise InvalidRequest(
                f"{shown} in the settings file {path} {problem}.",
                help_text="docs/settings.md lists the settings. `FOOTPLATE_TEMPORAL_ADDRESS` is temporal.address.",
            )
        found[field] = _read_value(f"{shown} in {path}", str(value)) if has_file_name else value
    return found


def _iter_keys(content: Mapping[str, Any], fields: Collection[str]) -> Iterator[tuple[str, str, Any]]:
    """Yields each key as it is in the file, the name that it sets, and its value."""
    for key, value in content.items():
        if isinstance(value, dict) and key not in fields:
            for inner, item in value.items():
                yield f"{key}.{inner}", f"{key}_{inner}", item
        else:
            yield key, key, value


def _find_field(name: str, fields: Collection[str]) -> tuple[str, bool]:
    """Returns the setting that a variable or key sets, and whether its value is the path of a file with the value."""
    plain = name.replace("__", "_")
    field = plain.removesuffix(_FILE_SUFFIX)
    return (field, True) if plain not in fields and field != plain and field in fields else (plain, False)


def _read_value(name: str, path: str) -> str:
    try:
        return Path(path).read_text().rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"{name} names the file {path}, which cannot be read: {_reason(error)}.",
            help_text="Correct the path or the permissions of the file.",
        ) from None


def _reason(error: OSError | ValueError) -> str:
    """Returns the reason without the file's content, which may be a secret."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not text in UTF-8"
