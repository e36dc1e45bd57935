"""The port through which a turn prepares the trees of its projects: caches, and what was already set up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from footplate.domain.ports.engine import SessionTree


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupRequest:
    """What the cache of a tree depends on, besides its files."""

    inside_path: str
    """Where the environment sees the tree."""
    platform: str | None
    """What programs in the environment are built for. None: nothing is restored or stored."""
    is_untouched: bool
    """Whether nothing but the checkout can have changed the session's files, apart from a `HOME` on this host. Only
    then is the result stored for other sessions.
    """
    is_home_empty: bool
    """Whether `HOME` is empty. It need not be if the setup is repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStart:
    """What was done before the setup command runs."""

    restored: Sequence[str] = ()
    """Directories that came from the cache."""


class TreeSetup(Protocol):
    async def needs_setup(self, tree: SessionTree) -> bool:
        """Whether the project has a setup that has not succeeded in this tree on this host."""

    async def begin_setup(self, tree: SessionTree, request: SetupRequest) -> SetupStart:
        """Restore the cached directories, if there are any for the state of the tree. A failure only means that there
        are none.
        """

    async def complete_setup(self, tree: SessionTree) -> Sequence[str]:
        """Note that the setup has succeeded, and store the cached directories if the request allowed it. Return those
        that were stored. The note is on disk before anything else may run in the tree.
        """
