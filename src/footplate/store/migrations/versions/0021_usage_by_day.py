"""What was used is added up by day as turns change, so that a month is read from some thousand rows."""

from footplate.store.migrations.script import run_sql

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    run_sql("0021_usage_by_day.sql")
