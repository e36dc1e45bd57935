"""Upgrades a database to the schema of this version of Footplate, with Alembic."""

import asyncio
import threading
from importlib.resources import files
from typing import Final

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DBAPIError

from footplate.domain.errors import Permanent

_UPGRADE_LOCK: Final = threading.Lock()
"""Alembic has module-level state, so only one upgrade may run at a time in a process."""


def alembic_config(dsn: str) -> Config:
    result = Config()
    result.set_main_option("script_location", str(files("footplate.store") / "migrations"))
    result.attributes["dsn"] = dsn
    return result


async def upgrade_schema(dsn: str, *, force: bool = False) -> None:
    """Applies new migrations. Safe to run from many processes at once: one applies them while the others wait.

    Raises `Conflict` if they would break a process that runs older code, unless `force` is set.
    """
    await asyncio.to_thread(_upgrade, dsn, force=force)


def _upgrade(dsn: str, *, force: bool) -> None:
    config = alembic_config(dsn)
    config.attributes["force"] = force
    with _UPGRADE_LOCK:
        try:
            command.upgrade(config, "head")
        except DBAPIError as error:
            if error.orig is None or not isinstance(error.orig.__cause__, asyncpg.InsufficientPrivilegeError):
                raise
            raise Permanent(
                f"The database refused the migration, and nothing was changed: {error.orig.__cause__}.",
                help_text="Give the user in FOOTPLATE_DATABASE_URL the permission to create tables in this database.",
            ) from error


def newest_revision() -> str:
    """Returns the schema revision that this version of the code expects."""
    head = ScriptDirectory.from_config(alembic_config("postgresql://unused")).get_current_head()
    assert head is not None
    return head
