"""The durable core: organisations, agents, environments, sessions, the log, the queue and turns."""

from footplate.store.migrations.script import run_sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql("0001_core.sql")
