"""Outputs of sessions: files that an agent leaves for clients."""

from footplate.store.migrations.script import run_sql

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    run_sql("0028_outputs.sql")
