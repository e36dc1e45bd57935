"""Sessions that rest are archived to one object; deletions are finished by the sweep."""

from footplate.store.migrations.script import run_sql

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_sql("0004_retention.sql")
