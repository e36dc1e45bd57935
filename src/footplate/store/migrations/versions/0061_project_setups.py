"""Projects get a setup command and cached directories, whose caches are listed."""

from footplate.store.migrations.script import run_sql

revision = "0061"
down_revision = "0059"


def upgrade() -> None:
    run_sql("0061_project_setups.sql")
