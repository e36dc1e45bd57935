"""Data types for snapshots of a session's files and for diffs between them. This module does not run git."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from footplate.domain.files.session_outputs import NO_OUTPUTS, SessionOutputs
from footplate.domain.sessions.events import AGENT_TOOL_USE, Event

SCRATCH_TREE: Final = "scratch"
"""The name of the tree of a session without projects. Other trees are named by their project id."""
HOME_TREE: Final = "home"
"""The name of the tree with the files of HOME, which other hosts and forks restore. Diffs do not contain it."""
EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The id of the empty git tree."""
HEAD: Final = "HEAD"
COMMITTED_FILES: Final = "head"
STAGED_FILES: Final = "index"
"""The names of the trees with the files of the agent's commit and of its index, among a snapshot's bundles."""
_READ_ONLY_TOOLS: Final = frozenset({"read", "glob", "grep", "web_fetch", "web_search"})
_DELIVERY_TOOLS: Final = frozenset({"merge_branch", "push_branch"})
"""The calls of steps that deliver. They use the snapshots of earlier turns, and not the working tree."""

ChangeStatus = Literal["added", "modified", "deleted", "renamed", "type_changed"]
ChangeState = Literal["committed", "staged", "unstaged", "untracked"]
CHANGE_STATES: Final[tuple[ChangeState, ...]] = ("committed", "staged", "unstaged", "untracked")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a working tree at one point in time. The same files have the same ids."""

    tree: str
    """The id of the git tree with the files. Diffs compare it."""
    sidecar: str | None = None
    """The id of a second git tree, for content that a git tree cannot hold under its own name: the agent's git
    directory (HEAD, index, refs and objects), those of nested repositories, and the files in submodules. None: there is
    none."""
    commits: tuple[tuple[str, str], ...] = ()
    """The agent's branches and `HEAD`, each with the id of its commit. Refs that still point to the base commit are
    omitted."""
    bundles: str | None = None
    """The id of a third git tree, with the git bundles in which the commits were exported from the environment, in
    order. Beside them are the files of `HEAD` if that is not the base commit, and those of the agent's index if they
    are not those of `HEAD`. None: there are none."""

    @property
    def head(self) -> str | None:
        """The commit that the agent had checked out. None: the base commit."""
        return dict(self.commits).get(HEAD)


@dataclass(frozen=True, slots=True)
class CollectedCommits:
    """The agent's own commits, in the form of a snapshot's fields."""

    commits: tuple[tuple[str, str], ...] = ()
    bundles: str | None = None


@dataclass(frozen=True, slots=True)
class OmittedPath:
    """A path in the working tree that the snapshot does not contain."""

    path: bytes
    reason: str

    def __str__(self) -> str:
        return f"{display_path(self.path)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TakenSnapshot:
    snapshot: Snapshot
    omitted: tuple[OmittedPath, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot in the object store, to which the log refers."""

    number: int
    """Its position in the session's chain of packs."""
    snapshot: Snapshot
    base: str | None = None
    """The id of the git tree that the session started from. None: it started with an empty tree."""
    omitted: tuple[str, ...] = ()
    """Paths that it does not contain, each with the reason. If there are very many, only the first ones."""

    @property
    def base_tree(self) -> str:
        return self.base or EMPTY_TREE


@dataclass(frozen=True, slots=True)
class TreeSnapshot:
    """The snapshot of one tree in an append to the log."""

    tree: str
    """A project's id, `SCRATCH_TREE` or `HOME_TREE`."""
    stored: StoredSnapshot
    is_turn_start: bool = False
    """Whether it was taken before the turn's first call. Changes since the previous snapshot are then not the turn's
    work."""


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """A session's files at one position of the log."""

    snapshots: Mapping[str, StoredSnapshot] = field(default_factory=dict)
    """The snapshot of each tree. A tree without one is in its initial state: its base commit, or empty."""
    ancestors: Sequence[str] = ()
    """In a fork: its ancestors, the nearest one first. Their packs are part of its files."""
    outputs: SessionOutputs = NO_OUTPUTS
    """Its current outputs. A fork starts without any."""


NO_FILES: Final = SessionFiles()


@dataclass(frozen=True, slots=True)
class TreeMerge:
    """How the files of a tree change when those of another session are added."""

    patch: bytes = b""
    """For `git apply`. Empty: nothing changes."""
    conflicts: tuple[str, ...] = ()
    """Paths that cannot be merged, each with the reason. Nothing is changed then."""


@dataclass(frozen=True, slots=True)
class ChildFiles:
    """The files of a child session when it started, and now."""

    session_id: str
    start: SessionFiles
    end: SessionFiles


@dataclass(frozen=True, slots=True)
class ExpiredSessionFiles:
    """The files of an expired session, according to the log."""

    snapshots: Mapping[str, StoredSnapshot | None]
    """The last snapshot of each tree. None: the log has no snapshot of it."""

    @property
    def omitted(self) -> Sequence[str]:
        """Paths that exist on the host but in no snapshot."""
        return [line for snapshot in self.snapshots.values() if snapshot is not None for line in snapshot.omitted]


def packs_prefix(folder: str, tree: str) -> str:
    """Return the location of a tree's packs in the object store, below the session's folder."""
    return f"{folder}/trees/{tree}"


def base_packs_prefix(organisation: str, project_id: str) -> str:
    """Return the location of a project's base packs in the object store, which all of its sessions share."""
    return f"{organisation}/projects/{project_id}/bases"


def may_have_written(call: Event) -> bool:
    """Whether a tool call may have changed files. Only tools that are known to be read-only cannot."""
    return call.type != AGENT_TOOL_USE or call.body.get("name") not in _READ_ONLY_TOOLS | _DELIVERY_TOOLS


def uses_working_tree(call: Event) -> bool:
    """Whether a tool call may read or change files of the session."""
    return call.type != AGENT_TOOL_USE or call.body.get("name") not in _DELIVERY_TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The change of one file in a diff."""

    path: bytes
    old_path: bytes | None = None
    """The previous path of a renamed file."""
    status: ChangeStatus
    added: int | None
    """Number of lines. None for a binary file."""
    deleted: int | None

    @property
    def binary(self) -> bool:
        return self.added is None


@dataclass(frozen=True, slots=True)
class DiffSummary:
    """The changed files of a diff."""

    files: Sequence[FileChange]
    states: Mapping[ChangeState, Sequence[FileChange]] | None
    """The changes by their state in git, at the end of the diff. None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDiff:
    """The two snapshots of a tree that are compared. Git determines the changed files."""

    organisation: str
    session_id: str
    ancestors: Sequence[str]
    """As in `SessionFiles`."""
    tree: str
    """A project's id, or `SCRATCH_TREE`."""
    name: str
    """The name for people to read."""
    is_additional: bool
    """Whether it is an additional project, beside the working directory."""
    old: StoredSnapshot | None
    """None, for `old` and `new`: the initial state."""
    new: StoredSnapshot | None

    @property
    def base_tree(self) -> str:
        """The id of the git tree that the session started from."""
        return next((snapshot.base_tree for snapshot in (self.new, self.old) if snapshot is not None), EMPTY_TREE)

    @property
    def tree_ids(self) -> tuple[str, str]:
        """The ids of the two git trees."""
        old, new = (self.base_tree if stored is None else stored.snapshot.tree for stored in (self.old, self.new))
        return old, new


def display_path(path: bytes) -> str:
    """Return a path as text for JSON. Bytes that are not UTF-8 are written as a backslash, `x` and two hex digits."""
    return path.decode("utf-8", "backslashreplace")
