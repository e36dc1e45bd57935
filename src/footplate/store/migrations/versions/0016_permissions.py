"""Permission rules of organisations, projects and sessions, and calls that wait for a person."""

from footplate.store.migrations.script import run_sql

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    run_sql("0016_permissions.sql")
