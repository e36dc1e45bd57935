"""Adds usage totals by day, so that a usage report does not have to read every turn of a month."""

from footplate.store.migrations.script import run_sql

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    run_sql("0021_usage_by_day.sql")
