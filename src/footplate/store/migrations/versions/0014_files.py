"""Files of organisations, and notes of bytes that have to go."""

from footplate.store.migrations.script import run_sql

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    run_sql("0014_files.sql")
