"""The forks of a session can be listed."""

from footplate.store.migrations.script import run_sql

revision = "0062"
down_revision = "0061"


def upgrade() -> None:
    run_sql("0062_forks_of_sessions.sql")
