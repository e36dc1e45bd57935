"""Adds the trace of a request to queued steps, and an index of turns by time for usage reports."""

from footplate.store.migrations.script import run_sql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_sql("0003_observed.sql")
