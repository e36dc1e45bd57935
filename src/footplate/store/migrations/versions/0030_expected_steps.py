"""The number of steps for each session that PostgreSQL expects when it plans a query."""

from footplate.store.migrations.script import run_sql

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    run_sql("0030_expected_steps.sql")
