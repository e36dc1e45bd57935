"""Where a call works: its working tree, its directory, its home, and how links are followed. Paths are POSIX text."""

import posixpath
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from footplate.gate.evaluation_budget import EvaluationBudget

_OF_WHO_LOOKS: Final = ("/proc", "/dev/fd")
"""What these are depends on who looks."""


class Links(Protocol):
    def real(self, path: str) -> str | None:
        """Where an absolute path really leads, `..` and links followed in order; None: it cannot be told."""


class NoLinks:
    """No file system at hand: a path is what it says."""

    def real(self, path: str) -> str | None:
        return normal(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    root: str
    """The working tree, absolute."""
    home: str = "/nonexistent"
    directories: tuple[str, ...] = ()
    """Further directories that belong to the workspace, absolute."""
    links: Links = field(default_factory=NoLinks)
    budget: EvaluationBudget = field(default_factory=EvaluationBudget, compare=False, repr=False)
    """What is left of the computation for one call."""

    def with_new_budget(self) -> "Place":
        return replace(self, budget=EvaluationBudget())

    def holds(self, path: str) -> bool:
        """Whether an absolute, normal path is in the workspace."""
        return under(path, self.root) or any(under(path, each) for each in self.directories)


class Target(NamedTuple):
    """One file that is named: by its own path and by where that leads. A rule may speak of either."""

    path: str
    real: str | None


def target(place: Place, directory: str, name: str) -> Target:
    if name == "~" or name.startswith("~/"):
        name = place.home + name[1:]
    elif name.startswith("~"):
        return Target(normal(posixpath.join(directory, name)), None)
    whole = name if name.startswith("/") else f"{directory}/{name}"
    path = normal(whole)
    if path.startswith(_OF_WHO_LOOKS) and (under(path, "/proc") or under(path, "/dev/fd")):
        return Target(path, None)
    return Target(path, place.links.real(whole))


def normal(path: str) -> str:
    """POSIX leaves `//x` to implementations; Linux takes it for `/x`."""
    if path[:1] == "/" and "/." not in path and "//" not in path:
        return path.rstrip("/") or "/"
    return "/" + posixpath.normpath("/" + path).lstrip("/")


def under(path: str, directory: str) -> bool:
    return directory in (path, "/") or path.startswith(f"{directory}/")
