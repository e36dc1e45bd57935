"""Resolves the paths of a tool call to files. `PathContext` contains the directories for this (working tree, home and
further directories), and the resolver for symbolic links.

Paths are POSIX strings.
"""

import posixpath
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from footplate.gate.rules.evaluation_budget import EvaluationBudget

_PROCESS_DEPENDENT: Final = ("/proc", "/dev/fd")
"""The content of these directories depends on the process that reads them."""


class LinkResolver(Protocol):
    """Resolves symbolic links."""

    def resolve(self, path: str) -> str | None:
        """Resolve an absolute path, following `..` and links in order. Returns None if the result is not known."""


class NoLinks:
    """Treats every path as if it contained no links, for callers without a file system."""

    def resolve(self, path: str) -> str | None:
        return normalise_path(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathContext:
    """The paths by which a call is evaluated, and the budget for the evaluation."""

    root: str
    """The absolute path of the working tree."""
    home: str = "/nonexistent"
    additional_directories: tuple[str, ...] = ()
    """Absolute paths of further directories that belong to the workspace."""
    links: LinkResolver = field(default_factory=NoLinks)
    budget: EvaluationBudget = field(default_factory=EvaluationBudget, compare=False, repr=False)
    """The remaining computation for one call."""

    def with_new_budget(self) -> "PathContext":
        return replace(self, budget=EvaluationBudget())

    def contains(self, path: str) -> bool:
        """Return whether an absolute, normalised path is in the workspace."""
        return is_under(path, self.root) or any(is_under(path, each) for each in self.additional_directories)


class FileTarget(NamedTuple):
    """A file that a call names: its path as given, and the path after resolving links. A rule may match either."""

    path: str
    real_path: str | None


def resolve_target(context: PathContext, directory: str, name: str) -> FileTarget:
    """Resolve a file name relative to a directory."""
    if name == "~" or name.startswith("~/"):
        name = context.home + name[1:]
    elif name.startswith("~"):
        return FileTarget(normalise_path(posixpath.join(directory, name)), None)
    full_path = name if name.startswith("/") else f"{directory}/{name}"
    path = normalise_path(full_path)
    if path.startswith(_PROCESS_DEPENDENT) and (is_under(path, "/proc") or is_under(path, "/dev/fd")):
        return FileTarget(path, None)
    return FileTarget(path, context.links.resolve(full_path))


def normalise_path(path: str) -> str:
    """Normalise an absolute path. POSIX leaves the meaning of `//x` to implementations; on Linux it is `/x`."""
    if path[:1] == "/" and "/." not in path and "//" not in path:
        return path.rstrip("/") or "/"
    return "/" + posixpath.normpath("/" + path).lstrip("/")


def is_under(path: str, directory: str) -> bool:
    return directory in (path, "/") or path.startswith(f"{directory}/")
