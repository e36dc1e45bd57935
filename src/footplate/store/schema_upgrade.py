"""Upgrades a database to the schema of this version of Footplate, with Alembic."""

import asyncio
import threading
from importlib.resources import files
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

_UPGRADE_LOCK: Final = threading.Lock()
"""Alembic has module-level state, so only one upgrade may run at a time in a process."""


def alembic_config(dsn: str) -> Config:
    result = Config()
    result.set_main_option("script_location", str(files("footplate.store") / "migrations"))
    result.set_main_option("sqlalchemy.url", _sqlalchemy_url(dsn).replace("%", "%%"))
    return result


async def upgrade_schema(dsn: str) -> None:
    """Applies new migrations. Safe to run from many processes at once: one applies them while the others wait."""
    await asyncio.to_thread(_upgrade, dsn)


def _upgrade(dsn: str) -> None:
    with _UPGRADE_LOCK:
        command.upgrade(alembic_config(dsn), "head")


def newest_revision() -> str:
    """Returns the schema revision that this version of the code expects."""
    head = ScriptDirectory.from_config(alembic_config("postgresql://unused")).get_current_head()
    assert head is not None
    return head


def _sqlalchemy_url(dsn: str) -> str:
    scheme, _, rest = dsn.partition("://")
    if scheme not in {"postgres", "postgresql"}:
        raise ValueError(f"The database URL must start with postgresql://, not {scheme}://.")
    return f"postgresql+asyncpg://{rest}"
