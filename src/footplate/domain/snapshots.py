"""Snapshots of a session's files and the differences between them, as values. No git here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from footplate.domain.events import AGENT_TOOL_USE, Event

SCRATCH: Final = "scratch"
"""The tree of a session without projects, where those of others have a project's id."""
EMPTY: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The git tree that has nothing in it."""
HEAD: Final = "HEAD"
_ONLY_READ: Final = frozenset({"read", "glob", "grep", "web_fetch", "web_search"})

ChangeStatus = Literal["added", "modified", "deleted", "renamed", "type_changed"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All files of a work tree at one moment, by what they are: the same files have the same ids."""

    tree: str
    """The id of a git tree: what a diff compares."""
    apart: str | None = None
    """The id of a second tree: what no git tree holds under its own name. The agent's own git directory (its HEAD,
    index, refs and objects), those of nested repositories, and what is in directories of submodules. None: nothing."""
    commits: tuple[tuple[str, str], ...] = ()
    """The agent's own: its branches and `HEAD`, by name, with their ids. Those that are where the tree began are left
    out."""
    bundles: str | None = None
    """The id of a third tree: the bundles that brought the commits out of the environment, as they are, one after the
    other. None: there are none."""

    @property
    def head(self) -> str | None:
        """The commit that the agent had checked out; None: the one that its tree began with."""
        return dict(self.commits).get(HEAD)


@dataclass(frozen=True, slots=True)
class Collected:
    """What became of an agent's commits, as in a snapshot."""

    commits: tuple[tuple[str, str], ...] = ()
    bundles: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in a work tree that its snapshot does not have."""

    path: bytes
    reason: str

    def __str__(self) -> str:
        return f"{shown(self.path)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Taken:
    snapshot: Snapshot
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """A snapshot that is in the object store: what the log refers to."""

    number: int
    """Its place in the session's chain of packs."""
    snapshot: Snapshot
    base: str | None = None
    """The id of the git tree that all began with; None: with nothing."""
    left_out: tuple[str, ...] = ()
    """What is not in it, each with its reason; the first of them, if they are very many."""

    @property
    def began(self) -> str:
        return self.base or EMPTY


@dataclass(frozen=True, slots=True)
class TreeSnapshot:
    """What an append to the log tells of one tree."""

    tree: str
    """A project's id, or `SCRATCH`."""
    kept: KeptSnapshot
    begins: bool = False
    """Taken before the turn's first call: what differs from the one before is not the turn's work."""


@dataclass(frozen=True, slots=True)
class Files:
    """A session's files as the log has them at one position."""

    kept: Mapping[str, KeptSnapshot] = field(default_factory=dict)
    """By tree. One that is not here is as it began: at its base, or empty."""
    owners: Sequence[str] = ()
    """Of a fork: the sessions that it begins in, the last one first. Their packs are part of its files."""


NO_FILES: Final = Files()


@dataclass(frozen=True, slots=True)
class RestingFiles:
    """Those of a session that has expired, as the log has them."""

    kept: Mapping[str, KeptSnapshot | None]
    """By tree; None: the log has no snapshot of it."""

    @property
    def left_out(self) -> Sequence[str]:
        """What a host has and no snapshot does."""
        return [line for kept in self.kept.values() if kept is not None for line in kept.left_out]


def prefix_of(folder: str, tree: str) -> str:
    """Where the packs of a session's tree are in the object store, below the session's own folder there."""
    return f"{folder}/trees/{tree}"


def bases_of(organisation: str, project_id: str) -> str:
    """Where those are that a project's trees began with: once for all of its sessions."""
    return f"{organisation}/projects/{project_id}/bases"


def may_have_written(call: Event) -> bool:
    """Whether a tool's call can have changed files. Who is not known to leave them alone may have."""
    return call.type != AGENT_TOOL_USE or call.body.get("name") not in _ONLY_READ


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One line of a diff's summary."""

    path: bytes
    old_path: bytes | None = None
    """Where a renamed file was."""
    status: ChangeStatus
    added: int | None
    """Lines; None for a binary file."""
    deleted: int | None

    @property
    def binary(self) -> bool:
        return self.added is None


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDiff:
    """Which two moments of a tree are compared; which files that concerns is git's to say."""

    organisation: str
    session_id: str
    owners: Sequence[str]
    """As in `Files`."""
    tree: str
    """A project's id, or `SCRATCH`."""
    name: str
    """As a person knows it."""
    beside: bool
    """It is not the working directory, but lies beside it."""
    old: KeptSnapshot | None
    """None, in both: as it began."""
    new: KeptSnapshot | None

    @property
    def ids(self) -> tuple[str, str]:
        """Of git trees."""
        began = next((kept.began for kept in (self.new, self.old) if kept is not None), EMPTY)
        old, new = (began if kept is None else kept.snapshot.tree for kept in (self.old, self.new))
        return old, new


def shown(path: bytes) -> str:
    """A path as text that every JSON reader takes: bytes that are no UTF-8 are written as a backslash, x and hex."""
    return path.decode("utf-8", "backslashreplace")
