"""The state of a session's persistent shell that is stored with the session: its working directory and exported
variables. A new shell, on any host, continues from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, Literal, Self, cast

from footplate.domain.json import JsonObject

MAX_VARIABLE_BYTES: Final = 32 * 1024
"""The limit for the names and values of all stored variables together."""
_MAX_DIRECTORY_BYTES: Final = 4096
_OWN_PREFIX: Final = "FOOTPLATE_"
_NOT_STORED: Final = frozenset({"HOME", "PWD", "OLDPWD", "SHLVL", "_", "BASH_ENV", "ENV", "BASHOPTS", "SHELLOPTS"})
"""Variables that the environment or a shell sets itself, and those that name files which a shell runs at its start."""

DirectoryBase = Literal["root", "home", "absolute"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellState:
    base: DirectoryBase = "root"
    directory: str | None = None
    """The working directory, relative to its base, because hosts may have the session's files at different paths. None:
    the one in which programs start."""
    variables: Mapping[str, str] = field(default_factory=dict)
    backend_variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By backend, the changed values of variables that the backend sets itself. `PATH`, for example, has other entries
    in a container than on the host."""

    def to_json(self) -> JsonObject:
        stored: JsonObject = {"base": self.base, "directory": self.directory, "variables": {**self.variables}}
        if self.backend_variables:
            stored["backend_variables"] = {name: {**values} for name, values in self.backend_variables.items()}
        return stored

    @classmethod
    def from_json(cls, stored: JsonObject | None) -> Self:
        if stored is None:
            return cls()
        return cls(
            base=cast("DirectoryBase", stored["base"]),
            directory=cast("str | None", stored["directory"]),
            variables=cast("Mapping[str, str]", stored["variables"]),
            backend_variables=cast("Mapping[str, Mapping[str, str]]", stored.get("backend_variables") or {}),
        )

    def select_variables(self, backend: str, initial_variables: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variables that a new shell exports on this backend, which sets `initial_variables` itself."""
        shared = {name: value for name, value in self.variables.items() if name not in initial_variables}
        return {**shared, **self.backend_variables.get(backend, {})}

    def locate(self, *, root: str, home: str) -> str | None:
        """Return the absolute path of the working directory on this host. None: the one in which programs start."""
        if self.directory is None:
            return None
        return str(PurePosixPath({"root": root, "home": home, "absolute": "/"}[self.base], self.directory))


NEW_SHELL: Final = ShellState()


def describe_shell(
    directory: bytes,
    exported: Mapping[bytes, bytes],
    *,
    previous: ShellState,
    backend: str,
    initial_variables: Mapping[str, str],
    roots: Mapping[DirectoryBase, str],
    initial_directory: str,
) -> ShellState:
    """Return what is stored of a shell in this directory with these exported variables.

    Variables with the value with which every shell starts are not stored, and neither are Footplate's own: they belong
    to one turn. `roots`: the paths of the bases on this host. `previous` is the state before, which has what this
    backend does not know: the variables of other backends, and those that only here are set by the backend itself.
    """
    base, relative = _relative_directory(directory, roots, initial_directory)
    found = _select_variables(exported, initial_variables)
    own = {name: value for name, value in found.items() if name in initial_variables}
    hidden = {name: value for name, value in previous.variables.items() if name in initial_variables}
    others = {name: values for name, values in previous.backend_variables.items() if name != backend}
    return ShellState(
        base=base,
        directory=relative,
        variables={**{name: value for name, value in found.items() if name not in own}, **hidden},
        backend_variables={**others, **({backend: own} if own else {})},
    )


def _relative_directory(
    directory: bytes, roots: Mapping[DirectoryBase, str], initial_directory: str
) -> tuple[DirectoryBase, str | None]:
    try:
        path = PurePosixPath(directory.decode())
    except UnicodeDecodeError:
        return "root", None
    if not path.is_absolute() or str(path) == initial_directory or len(directory) > _MAX_DIRECTORY_BYTES:
        return "root", None
    for base, root in roots.items():
        if path.is_relative_to(root):
            return base, str(path.relative_to(root))
    return "absolute", str(path)


def _select_variables(exported: Mapping[bytes, bytes], initial: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables to store. If they are too large together, the smallest ones are stored."""
    found: dict[str, str] = {}
    for name_bytes, value_bytes in exported.items():
        try:
            name, value = name_bytes.decode(), value_bytes.decode()
        except UnicodeDecodeError:
            continue
        if "\0" in value:  # no variable has this: the report was forged
            continue
        if name not in _NOT_STORED and not name.startswith(_OWN_PREFIX) and initial.get(name) != value:
            found[name] = value
    stored: dict[str, str] = {}
    size = 0
    for name in sorted(found, key=lambda one: (len(exported[one.encode()]), one)):
        size += len(name.encode()) + len(exported[name.encode()])
        if size > MAX_VARIABLE_BYTES:
            break
        stored[name] = found[name]
    return dict(sorted(stored.items()))
