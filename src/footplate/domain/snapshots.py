"""Snapshots of a session's files and the differences between them, as values. No git here."""

from dataclasses import dataclass
from typing import Literal

ChangeStatus = Literal["added", "modified", "deleted", "renamed", "type_changed"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All files of a work tree at one moment, by what they are: the same files have the same ids."""

    tree: str
    """The id of a git tree: what a diff compares."""
    apart: str | None = None
    """The id of a second tree: what no git tree holds under its own name. The agent's own git directory (its HEAD,
    index, refs and objects), those of nested repositories, and what is in directories of submodules. None: nothing."""


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


def shown(path: bytes) -> str:
    """A path as text that every JSON reader takes: bytes that are no UTF-8 are written as a backslash, x and hex."""
    return path.decode("utf-8", "backslashreplace")
