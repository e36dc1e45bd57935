"""The feed also reports threads: when a subagent got work, and when it is idle."""

from footplate.store.migrations.script import run_sql

revision = "0035"
down_revision = "0033"


def upgrade() -> None:
    run_sql("0035_threads_in_the_feed.sql")
