"""The revision of the schema that this code knows, and whether it can use the schema of a database.

This module does not load Alembic, which would slow down the start of every process.
"""

from functools import cache
from importlib.resources import files

from footplate import __version__
from footplate.domain.errors import Conflict
from footplate.store.database import Database


@cache
def known_revision() -> str:
    """Returns the newest revision that this code knows."""
    versions = files("footplate.store.migrations.versions").iterdir()
    return max(file.name[:4] for file in versions if file.name[:4].isdigit())


async def check_needed_code(database: Database) -> None:
    """Raises `Conflict` if a migration has removed what this code uses."""
    row = await database.fetchrow("schema_requirement")
    if row is not None and row["needs_code"] > known_revision():
        raise Conflict(
            f"This version of Footplate ({__version__}) is too old for the database: revision {row['revision']} of its "
            f"schema needs code that knows revision {row['needs_code']}, and this version knows {known_revision()}.",
            help_text="Install the version with which the database was migrated, or a newer one.",
        )
