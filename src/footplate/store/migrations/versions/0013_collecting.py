"""Adds the index and the column that garbage collection and expiry of sessions need."""

from footplate.store.migrations.script import run_sql

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    run_sql("0013_collecting.sql")
