"""Teams, visibility of sessions and files, keys that are restricted to projects, and successors of disabled members."""

from footplate.store.migrations.script import run_sql

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    run_sql("0023_visibility.sql")
