"""Traces go on from a request to its turn, and usage is found by time."""

from footplate.store.migrations.script import run_sql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_sql("0003_observed.sql")
