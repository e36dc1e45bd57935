"""Names and removes the directories of sessions on a host."""

from pathlib import Path
from typing import Final

import structlog

from footplate.domain.organisations.organisation_names import directory_name
from footplate.domain.projects.project import PRIVATE_TREES
from footplate.environments.directory_removal import remove_directory_async

log = structlog.get_logger(__name__)

WORKSPACES: Final = "workspaces"
"""The subdirectory of the data directory that contains a directory for each session."""
_STATE_NAME: Final = "{}.state"


def state_directory(session_dir: Path) -> Path:
    """Returns the directory for a session's state outside its tree."""
    return session_dir.with_name(_STATE_NAME.format(session_dir.name))


def session_id_of(name: str) -> str:
    """Returns the id of the session that a directory of this name belongs to."""
    return name.removesuffix(_STATE_NAME.format(""))


async def remove_session_directories(root: Path, organisation: str, session_id: str) -> None:
    """Removes all directories of a session on this machine."""
    session_dir = root / directory_name(organisation) / session_id
    # Remove its own directory last: if the removal is interrupted, the session is found again by it.
    for directory in (
        root.parent / PRIVATE_TREES / directory_name(organisation) / session_id,
        state_directory(session_dir),
        session_dir,
    ):
        if directory.exists() and not await remove_directory_async(directory):
            log.warning(
                "session directory could not be removed", action="session.directory_left", directory=str(directory)
            )
