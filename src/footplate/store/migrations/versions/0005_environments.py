"""Adds a copy of the environment's configuration to sessions, and a name for the cell (the deployment)."""

from footplate.store.migrations.script import run_sql

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_sql("0005_environments.sql")
