"""Adds the snapshots of a session's files, by position in its log."""

from footplate.store.migrations.script import run_sql

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    run_sql("0011_snapshots.sql")
